"""One packet, as TRex's example of this name sends it."""

from trex_stl_lib.api import *


class OnePacket(object):
    def get_streams(self, direction=0, **kwargs):
        packet = Ether() / IP(src="16.0.0.1", dst="48.0.0.1") / UDP(dport=12, sport=1025) / (10 * "x")
        return [STLStream(packet=STLPktBuilder(pkt=packet), mode=STLTXCont())]


def register():
    return OnePacket()
