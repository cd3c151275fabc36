"""A load test in the manner of the articles': TRex's own client warms up, raises the load by `update`, holds it, and
writes what it saw each second as JSON.

Arguments: the port for calls, the port for events, steps of the ramp, seconds of a step, seconds to hold.
Standard output: {"vars": ..., "stats": {second: {"0": ..., "1": ..., "global": ...}}} on the last line.
"""

import json
import sys
import time
import warnings

warnings.simplefilter("ignore")

from lbr_trex_client.interactive.trex.stl.api import (  # noqa: E402
    Ether, IP, STLClient, STLPktBuilder, STLStream, STLTXCont, UDP,
)

WARM_UP = ("1kpps", 1)


def load(client, mult, seconds, stats):
    """Sends at this load from now on, and notes what a second saw."""
    client.update(ports=[0], mult=mult)
    for _ in range(seconds):
        begun = time.monotonic()
        time.sleep(1)
        seen = client.get_stats()
        second = {str(port): dict(seen[port]) for port in (0, 1)}
        second["global"] = dict(seen["global"], mult=mult, seconds=time.monotonic() - begun)
        stats[str(len(stats))] = second


def main():
    calls, events, steps, step, hold = map(int, sys.argv[1:])
    client = STLClient(server="127.0.0.1", sync_port=calls, async_port=events)
    client.connect()
    stats = {}
    try:
        client.reset(ports=[0, 1])
        base = Ether() / IP(src="16.0.0.1", dst="48.0.0.1") / UDP(dport=12, sport=1025) / (18 * "x")
        client.add_streams(STLStream(packet=STLPktBuilder(pkt=base), mode=STLTXCont(pps=1)), ports=[0])
        client.start(ports=[0], mult=WARM_UP[0], duration=-1)
        time.sleep(WARM_UP[1])
        client.clear_stats()
        for number in range(1, steps + 1):
            load(client, "%d%%" % (100 * number / steps), step, stats)
        load(client, "100%", hold, stats)
        client.stop(ports=[0])
    finally:
        client.disconnect()
    ramp = {"warmup_mult": WARM_UP[0], "warmup_duration": WARM_UP[1], "rampup_target": "100%",
            "rampup_duration": steps * step, "hold_duration": hold, "profile_file": "udp_1pkt_simple.py"}
    print(json.dumps({"vars": ramp, "stats": stats}))


main()
