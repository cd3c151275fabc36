"""Three bursts, one after the other: 100, 200 and 300 packets, as TRex's example of this name sends them."""

from trex_stl_lib.api import *


class Chain(object):
    def get_streams(self, direction=0, **kwargs):
        base = Ether() / IP(src="16.0.0.1", dst="48.0.0.1") / UDP(dport=12, sport=1025)
        packet = STLPktBuilder(pkt=base / ((60 - len(base)) * "x"))
        burst = STLTXSingleBurst
        return [
            STLStream(isg=10.0, packet=packet, name="S0", mode=burst(pps=1000, total_pkts=100), next="S1"),
            STLStream(self_start=False, packet=packet, name="S1", mode=burst(pps=1000, total_pkts=200), next="S2"),
            STLStream(self_start=False, packet=packet, name="S2", mode=burst(pps=1000, total_pkts=300)),
        ]


def register():
    return Chain()
