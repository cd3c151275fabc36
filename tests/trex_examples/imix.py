"""Three sizes at 28 to 16 to 4, each from 254 addresses, as TRex's example of this name sends them."""

from trex_stl_lib.api import *


class Imix(object):
    def stream(self, size, pps, isg, networks):
        source, destination = networks
        base = Ether() / IP() / UDP()
        program = STLVM()
        program.var(name="src", min_value=source[0], max_value=source[1], size=4, op="inc")
        program.var(name="dst", min_value=destination[0], max_value=destination[1], size=4, op="inc")
        program.write(fv_name="src", pkt_offset="IP.src")
        program.write(fv_name="dst", pkt_offset="IP.dst")
        program.fix_chksum()
        packet = STLPktBuilder(pkt=base / ((size - len(base)) * "x"), vm=program)
        return STLStream(isg=isg, packet=packet, mode=STLTXCont(pps=pps))

    def get_streams(self, direction=0, **kwargs):
        networks = [("16.0.0.1", "16.0.0.254"), ("48.0.0.1", "48.0.0.254")]
        if direction == 1:
            networks.reverse()
        return [self.stream(size, pps, isg, networks)
                for size, pps, isg in [(60, 28, 0), (590, 16, 0.1), (1514, 4, 0.2)]]


def register():
    return Imix()
