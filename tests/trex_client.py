"""Drives `linerate serve` by TRex's own client, unmodified, as scripts of TRex's users do.

Arguments: the port for calls, the port for events, the name of a scenario, what else it needs: the server's process, or a directory.
Standard output: what was seen, as one JSON object.
"""

import json
import os
import signal
import subprocess
import sys
import time
import warnings

# What the client of 2025 does with a Python of today.
warnings.simplefilter("ignore")

import lbr_trex_client  # noqa: E402

# Profiles import the library by the name that it has in a checkout of TRex.
sys.path.insert(0, os.path.join(os.path.dirname(lbr_trex_client.__file__), "interactive"))
from trex.stl.api import (  # noqa: E402
    Ether, ICMP, IP, STLClient, STLError, STLFlowLatencyStats, STLFlowStats,
    STLPktBuilder, STLProfile, STLScVmRaw, STLStream, STLTXCont,
    STLTXMultiBurst, STLTXSingleBurst, STLVmFixIpv4, STLVmFlowVar, STLVmWrFlowVar, UDP,
)


def packet(direction, size=64, vary=True):
    """As bench.py makes them: sizes include the FCS."""
    networks = [("16.0.0.4", "16.0.0.254"), ("48.0.0.4", "48.0.0.254")]
    (source, last), (destination, _) = networks if direction == 0 else networks[::-1]
    base = Ether() / IP(src=source, dst=destination) / UDP(dport=12, sport=1025, chksum=0)
    program = STLScVmRaw([
        STLVmFlowVar(name="src", min_value=source, max_value=last, size=4, op="inc"),
        STLVmWrFlowVar(fv_name="src", pkt_offset="IP.src"),
        STLVmFixIpv4(offset="IP"),
    ])
    return STLPktBuilder(pkt=base / (max(0, size - 4 - len(base)) * "x"), vm=program if vary else None)


def stream(direction, mode=None, **options):
    return STLStream(packet=packet(direction, **options), mode=mode or STLTXCont(pps=1))


def steady(client, seen):
    """Start, update, pause, resume and stop, in both directions."""
    for port in (0, 1):
        client.add_streams([stream(port)], ports=[port])
    client.clear_stats()
    client.start(ports=[0, 1], mult="2kpps", duration=-1)
    time.sleep(2.5)
    seen["rates"] = [client.get_stats()[port]["tx_pps"] for port in (0, 1)]
    client.update(ports=[0, 1], mult="4kpps")
    time.sleep(3)
    seen["updated"] = [client.get_stats()[port]["tx_pps"] for port in (0, 1)]
    client.pause(ports=[0, 1])
    time.sleep(0.3)
    before = client.get_stats()[0]["opackets"]
    time.sleep(0.5)
    seen["while_paused"] = client.get_stats()[0]["opackets"] - before
    client.resume(ports=[0, 1])
    time.sleep(1)
    seen["after_pause"] = client.get_stats()[0]["opackets"] - before
    client.stop(ports=[0, 1])
    time.sleep(0.3)
    counted(client, seen)
    client.clear_stats()
    seen["cleared"] = [client.get_stats()[port]["opackets"] for port in (0, 1)]


def percent(client, seen):
    """A load in per cent of line rate for a second, waited for."""
    client.add_streams([stream(0)], ports=[0])
    client.clear_stats()
    client.start(ports=[0], mult="0.01%", duration=1)
    started = time.time()
    client.wait_on_traffic(ports=[0], timeout=20)
    seen["took"] = time.time() - started
    time.sleep(0.3)
    counted(client, seen)


def bursts(client, seen):
    """Bursts have exactly their packets."""
    several = STLTXMultiBurst(pps=2000, pkts_per_burst=50, count=4, ibg=50000.0)
    for name, mode in [("single", STLTXSingleBurst(pps=2000, total_pkts=700)), ("multi", several)]:
        client.reset(ports=[0, 1])
        client.add_streams([stream(0, mode)], ports=[0])
        client.clear_stats()
        client.start(ports=[0], mult="1")
        client.wait_on_traffic(ports=[0], timeout=20)
        time.sleep(0.3)
        seen[name] = {}
        counted(client, seen[name])


CHAINS = {"3st": 600, "multi": 300, "loop": 120}
"""The packets of each chain."""


def chain(client, seen):
    """One chain, and bursts beside a stream without end."""
    chains(client, seen, ["3st"])


def chains(client, seen, names=tuple(CHAINS)):
    """As burst_3st_600pkt.py, multi_burst_2st_1000pkt.py and burst_3st_loop_x_times.py of TRex, at higher rates."""
    def profile(name, streams):
        if name not in names:
            return
        client.reset(ports=[0, 1])
        client.add_streams(streams, ports=[0])
        client.clear_stats()
        client.start(ports=[0], mult="1")
        client.wait_on_traffic(ports=[0], timeout=20)
        # On a busy machine the sender learns late what it has missed.
        end = time.time() + 10
        while time.time() < end and sum(client.get_stats()[0][key] for key in ("opackets", "oerrors")) < CHAINS[name]:
            time.sleep(0.1)
        time.sleep(0.3)
        seen[name] = {}
        counted(client, seen[name])

    def one(name, mode, **options):
        size = options.pop("size", 64)
        return STLStream(name=name, packet=packet(0, size), mode=mode, **options)

    single = STLTXSingleBurst
    profile("3st", [
        one("S0", single(pps=1000, total_pkts=100), isg=10.0, next="S1"),
        one("S1", single(pps=1000, total_pkts=200), self_start=False, next="S2", size=128),
        one("S2", single(pps=1000, total_pkts=300), self_start=False),
    ])
    profile("multi", [
        one("S0", single(pps=1000, total_pkts=100), isg=10000.0, next="S1"),
        one("S1", STLTXMultiBurst(pps=1000, pkts_per_burst=40, count=5, ibg=100000.0), self_start=False, size=128),
    ])
    profile("loop", [
        one("S0", single(pps=1000, total_pkts=10), next="S1"),
        one("S1", single(pps=1000, total_pkts=20), self_start=False, next="S2"),
        one("S2", single(pps=1000, total_pkts=30), self_start=False, next="S0", action_count=2),
    ])
    # Bursts beside a stream without end.
    client.reset(ports=[0, 1])
    client.add_streams([
        one("steady", STLTXCont(pps=500)),
        one("bursts", STLTXMultiBurst(pps=5000, pkts_per_burst=50, count=10, ibg=100000.0), size=128),
    ], ports=[0])
    client.clear_stats()
    started = time.time()
    client.start(ports=[0], mult="1")
    # An engine takes a moment to start.
    end = time.time() + 10
    while time.time() < end and sum(client.get_stats()[0][key] for key in ("opackets", "oerrors")) == 0:
        time.sleep(0.05)
    time.sleep(2)
    client.stop(ports=[0])
    # How long the load can have lasted: a busy machine makes more of it than the two seconds of sleep.
    seen["beside"] = {"at_most_s": time.time() - started}
    time.sleep(0.5)
    counted(client, seen["beside"])


def mixed(client, seen):
    """IMIX: three streams at rates of 28 to 16 to 4."""
    client.add_streams(
        [STLStream(packet=packet(0, size), isg=isg, mode=STLTXCont(pps=pps))
         for size, pps, isg in [(64, 28, 0), (594, 16, 0.1), (1518, 4, 0.2)]],
        ports=[0],
    )
    client.clear_stats()
    client.start(ports=[0], mult="1kpps", duration=3)
    client.wait_on_traffic(ports=[0], timeout=20)
    time.sleep(0.3)
    counted(client, seen)


def groups(client, seen):
    """Flow statistics and latency by pg_id, in both directions, also while the load changes."""
    client.add_streams([
        STLStream(packet=packet(0), mode=STLTXCont(pps=100), flow_stats=STLFlowStats(pg_id=7)),
        STLStream(packet=packet(0, 128), mode=STLTXCont(pps=200), flow_stats=STLFlowLatencyStats(pg_id=12)),
        stream(0),
    ], ports=[0])
    client.add_streams([
        STLStream(packet=packet(1), mode=STLTXCont(pps=100), flow_stats=STLFlowStats(pg_id=8)),
    ], ports=[1])
    seen["active"] = client.get_active_pgids()
    client.clear_stats()
    client.start(ports=[0, 1], mult="2.2kpps", duration=-1)
    # Rates follow by half each half second.
    time.sleep(3.5)
    seen["running"] = client.get_pgid_stats()
    client.update(ports=[0, 1], mult="4.4kpps")
    time.sleep(1)
    client.stop(ports=[0, 1])
    time.sleep(0.5)
    counted(client, seen)
    seen["groups"] = client.get_pgid_stats()
    # The tables of the console are made of these, too.
    client.pgid_stats.latency_stats_to_table([12])
    client.pgid_stats.latency_histogram_to_table([12])
    client.clear_pgid_stats()
    seen["cleared"] = client.get_pgid_stats()["flow_stats"][7]["tx_pkts"]["total"]
    client.remove_all_streams(ports=[0, 1])
    seen["removed"] = client.get_active_pgids()


def service(client, seen):
    """Address resolution, and a ping whose answer is captured, also while streams are sent."""
    client.set_service_mode(ports=[0])
    client.set_l3_mode(port=0, src_ipv4="100.65.1.2", dst_ipv4="100.65.1.1")
    client.resolve(ports=[0])
    layers = client.get_port(0).get_layer_cfg()
    seen["resolved"] = layers["ipv4"]["state"], layers["ether"]["dst"]
    client.add_streams([stream(0)], ports=[0])
    client.start(ports=[0], mult="100pps", force=True)
    # An engine that starts takes the port for a moment.
    time.sleep(2)
    capture = client.start_capture(rx_ports=[0], tx_ports=[0], limit=50, bpf_filter="icmp")
    seen["status"] = [it["state"] for it in client.get_capture_status().values()]
    ping = Ether() / IP(src="100.65.1.2", dst="100.65.1.1") / ICMP() / (40 * "p")
    client.push_packets([ping] * 3, ports=[0], force=True, ipg_usec=10000)
    time.sleep(1)
    packets = []
    client.stop_capture(capture["id"], output=packets)
    seen["captured"] = sorted((packet["origin"], Ether(packet["binary"])[ICMP].type) for packet in packets)
    client.stop(ports=[0])
    seen["left"] = len(client.get_capture_status())
    client.set_service_mode(ports=[0], enabled=False)


def examples(client, seen):
    """TRex's own examples, or the same in their form: the directory of either is the fourth argument."""
    for name in ["udp_1pkt_simple", "imix", "bench", "burst_3st_600pkt", "flow_stats_latency"]:
        client.reset(ports=[0, 1])
        options = {"vm": "var2"} if name == "bench" else {}
        for port in (0, 1):
            file = os.path.join(sys.argv[4], name + ".py")
            streams = STLProfile.load_py(file, direction=port, port_id=port, **options).get_streams()
            client.add_streams(streams, ports=[port])
        client.clear_stats()
        if name == "burst_3st_600pkt":
            client.start(ports=[0, 1], mult="1")
        else:
            client.start(ports=[0, 1], mult="10%", duration=2)
        client.wait_on_traffic(ports=[0, 1], timeout=30)
        time.sleep(0.5)
        seen[name] = {}
        counted(client, seen[name])
        if name == "flow_stats_latency":
            latency = client.get_pgid_stats([0, 1])["latency"]
            seen[name]["dropped"] = [latency[port]["err_cntrs"]["dropped"] for port in (0, 1)]


def others(client, seen):
    """Promiscuous mode and all multicast of an interface: on, off, on and given back, on and the server killed."""
    def interface():
        with open("/sys/class/net/eth1/flags") as file:
            value = int(file.read(), 16)
        return [bool(value & 0x100), bool(value & 0x200)]

    def flags():
        status = client.get_port(0).get_formatted_info()
        return interface() + [status["prom"], status["mult"]]

    seen["supported"] = client.get_port(0).get_formatted_info()["prom_supported"]
    seen["at first"] = flags()
    client.set_port_attr(ports=[0], promiscuous=True)
    seen["promiscuous"] = flags()
    client.set_port_attr(ports=[0], promiscuous=True, multicast=True)
    seen["both"] = flags()
    client.set_port_attr(ports=[0], promiscuous=False)
    seen["multicast"] = flags()
    client.reset(ports=[0])
    client.set_port_attr(ports=[0], promiscuous=True, multicast=True)
    client.release(ports=[0])
    seen["released"] = interface()
    client.acquire(ports=[0])
    client.set_port_attr(ports=[0], promiscuous=True, multicast=True)
    seen["again"] = interface()
    os.kill(int(sys.argv[4]), signal.SIGKILL)
    end = time.time() + 10
    while time.time() < end and any(interface()):
        time.sleep(0.05)
    seen["killed"] = interface()
    print(json.dumps(seen), flush=True)
    # There is nobody to take leave of.
    os._exit(0)


def refused(client, seen):
    """What the server cannot do, it says by name."""
    seen["refusals"] = refusals = []

    def expect(call):
        try:
            call()
            refusals.append("not refused")
        except STLError as error:
            refusals.append(str(error))

    paused = STLStream(packet=packet(0), start_paused=True)
    expect(lambda: client.add_streams([paused], ports=[0]))
    client.reset(ports=[0, 1])
    client.add_streams([stream(0)], ports=[0])
    expect(lambda: client.start(ports=[0], mult="200%"))
    other = STLClient(server="127.0.0.1", sync_port=int(sys.argv[1]), async_port=int(sys.argv[2]), username="other")
    other.connect()
    expect(lambda: other.acquire(ports=[0]))
    other.acquire(ports=[0], force=True)
    time.sleep(1)
    expect(lambda: client.start(ports=[0], mult="1kpps"))
    other.disconnect()


def endless(client, seen):
    """Sends until it is killed."""
    client.add_streams([stream(0)], ports=[0])
    client.start(ports=[0], mult="1kpps")
    print("sending", flush=True)
    time.sleep(300)


def killed(client, seen):
    """Another client takes the ports, sends, and is killed: how long until nothing is sent and the ports are free."""
    owner = subprocess.Popen([sys.executable, *sys.argv[:3], "endless"], stdout=subprocess.PIPE, text=True)
    any(line == "sending\n" for line in owner.stdout)
    sent = lambda: client.get_stats(ports=[0])[0]["opackets"]
    before = sent()
    time.sleep(2)
    seen["by_the_owner"] = sent() - before
    owner.kill()
    owner.wait()
    began = time.time()
    while time.time() < began + 90 and "took" not in seen:
        before = sent()
        time.sleep(1)
        if sent() == before:
            seen["took"] = time.time() - began
    # Not by force.
    client.acquire(ports=[0, 1])


def counted(client, seen):
    stats = client.get_stats()
    for key in ("opackets", "ipackets", "obytes", "ibytes", "oerrors"):
        seen[key] = [stats[port][key] for port in (0, 1)]


def main():
    client = STLClient(server="127.0.0.1", sync_port=int(sys.argv[1]), async_port=int(sys.argv[2]))
    client.connect()
    seen = {"version": client.get_server_version()}
    try:
        client.reset(ports=[0, 1])
        {"steady": steady, "percent": percent, "bursts": bursts, "chain": chain, "chains": chains, "mixed": mixed, "groups": groups, "service": service,
         "others": others, "examples": examples, "refused": refused, "endless": endless, "killed": killed}[sys.argv[3]](
            client, seen)
    finally:
        client.disconnect()
    print(json.dumps(seen))


main()
