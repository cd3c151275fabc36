"""Frames of one size from 251 addresses to 251, as TRex's example of this name sends them with vm=var2."""

from trex_stl_lib.api import *


class Bench(object):
    def get_streams(self, direction=0, size=64, vm="var2", **kwargs):
        networks = [("16.0.0.4", "16.0.0.254"), ("48.0.0.4", "48.0.0.254")]
        if direction == 1:
            networks.reverse()
        source, destination = networks
        base = Ether() / IP(src=source[0], dst=destination[0]) / UDP(dport=12, sport=1025, chksum=0)
        program = STLVM()
        program.var(name="src", min_value=source[0], max_value=source[1], size=4, op="inc")
        program.var(name="dst", min_value=destination[0], max_value=destination[1], size=4, op="inc")
        program.write(fv_name="src", pkt_offset="IP.src")
        program.write(fv_name="dst", pkt_offset="IP.dst")
        program.fix_chksum()
        packet = STLPktBuilder(pkt=base / ((size - 4 - len(base)) * "x"), vm=program)
        return [STLStream(packet=packet, mode=STLTXCont(pps=1))]


def register():
    return Bench()
