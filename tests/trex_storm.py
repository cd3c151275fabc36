"""Many clients at once, a quarter of whose calls are malformed.

Arguments: the port for calls, the port for events, clients, connects of TRex's own client, calls.
Standard output: how many calls were answered and refused, as JSON. It fails when one is not answered.
"""

import json
import multiprocessing
import random
import socket
import struct
import sys
import warnings
import zlib

warnings.simplefilter("ignore")

from lbr_trex_client.interactive.trex.stl.api import STLClient  # noqa: E402
import zmq  # noqa: E402 (the one that TRex's client brings along)

MAGIC = 0xABE85CEA
METHODS = ["ping", "get_version", "get_system_info", "get_port_status", "get_global_stats", "acquire", "add_stream",
           "start_traffic", "get_pgid_stats", "get_active_pgids", "remove_all_streams", "nonsense"]


def packed(text):
    return struct.pack(">II", MAGIC, len(text)) + zlib.compress(text)


def call(chance):
    parameters = {"api_h": chance.choice(["x", None, 7]), "port_id": chance.choice([0, 1, 2, -1, "0", None]),
                  "handler": "x", "pgids": [1], "stream": {}, "mul": {"type": "pps", "value": 1}}
    return json.dumps({"jsonrpc": "2.0", "id": "a", "method": chance.choice(METHODS), "params": parameters}).encode()


def malformed(chance):
    """Wrong in its framing, its JSON, its size or its types."""
    text = call(chance)
    whole = packed(text)
    return chance.choice([
        lambda: whole[:chance.randrange(len(whole))],
        lambda: struct.pack(">II", MAGIC, 1 << 31) + zlib.compress(text),
        lambda: struct.pack(">II", MAGIC, 10) + zlib.compress(bytes(1 << 20)),
        lambda: struct.pack(">II", MAGIC, len(text)) + bytes(chance.randrange(256) for _ in range(40)),
        lambda: packed(text[:chance.randrange(len(text))]),
        lambda: packed(b"[" * 100000),
        lambda: packed(json.dumps([7] * 5000).encode()),
        lambda: packed(b'{"jsonrpc": "2.0", "id": {}, "method": 7, "params": []}'),
        lambda: bytes(chance.randrange(256) for _ in range(chance.randrange(200))),
        lambda: b"x" * 2000000,
        lambda: b"",
    ])()


def stranger(chance, port):
    """Says what is no ZeroMQ at all, or a message that says nothing of where a reply goes, and is gone."""
    nothing = bytes(chance.randrange(256) for _ in range(100))
    no_envelope = b"\x01\x00\x02\x00A"
    with socket.create_connection(("127.0.0.1", port)) as garbage:
        garbage.sendall(chance.choice([nothing, no_envelope]))


def client(number, calls_port, events_port, connects, calls, answers):
    chance = random.Random(number)
    for _ in range(connects):
        trex = STLClient(server="127.0.0.1", sync_port=calls_port, async_port=events_port, verbose_level="none")
        trex.connect()
        trex.disconnect()
    context = zmq.Context()
    caller = context.socket(zmq.REQ)
    caller.setsockopt(zmq.RCVTIMEO, 30000)
    caller.setsockopt(zmq.LINGER, 0)
    caller.connect("tcp://127.0.0.1:%d" % calls_port)
    answered = refused = 0
    for count in range(calls):
        if count % 10 == 0:
            stranger(chance, calls_port)
        message = malformed(chance) if count % 4 == 0 else packed(call(chance))
        caller.send(message)
        try:
            reply = caller.recv()
        except zmq.ZMQError:
            sys.exit("no answer to call %d of client %d: %d bytes, %r" % (count, number, len(message), message[:80]))
        if reply[:4] == struct.pack(">I", MAGIC):
            reply = zlib.decompress(reply[8:])
        reply = json.loads(reply)
        answered += 1
        refused += "error" in reply if isinstance(reply, dict) else 1
        assert isinstance(reply, list) or ("error" in reply) != ("result" in reply), reply
    answers.put((answered, refused))


def main():
    calls_port, events_port, clients, connects, calls = map(int, sys.argv[1:])
    answers = multiprocessing.Queue()
    crowd = [
        multiprocessing.Process(target=client, args=(number, calls_port, events_port, connects // clients,
                                                     calls // clients, answers))
        for number in range(clients)
    ]
    for each in crowd:
        each.start()
    for each in crowd:
        each.join()
    failed = [each.exitcode for each in crowd if each.exitcode != 0]
    seen = [answers.get() for each in crowd if each.exitcode == 0]
    print(json.dumps({"failed": failed, "answered": sum(it[0] for it in seen), "refused": sum(it[1] for it in seen)}))


main()
