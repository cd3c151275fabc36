"""One stream whose latency is counted, as TRex's example of this name sends it."""

from trex_stl_lib.api import *


class Latency(object):
    def get_streams(self, direction=0, port_id=0, **kwargs):
        base = Ether() / IP(src="16.0.0.1", dst="48.0.0.1") / UDP(dport=12, sport=1025)
        packet = STLPktBuilder(pkt=base / ((60 - len(base)) * "x"))
        return [STLStream(packet=packet, mode=STLTXCont(pps=1000), flow_stats=STLFlowLatencyStats(pg_id=port_id))]


def register():
    return Latency()
