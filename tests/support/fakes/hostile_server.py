"""A server that misbehaves by chance, the same way for the same FAKE_SEED: it may flood, babble, drip, die, hang, fork
itself away, lie in its ready line and its totals, and answer with something else."""

import json
import os
import random
import signal
import socket
import sys
import time

chance = random.Random(int(os.environ.get("FAKE_SEED", "0")))
NOISE = (
    b"\n",
    b"{",
    b"[" * 3000,
    b"\0\xff\x1b[2J",
    b'{"ready": true}\n',
    b"x" * 70_000,
    b'{"requests": 1e999}\n',
    b"\n" * 9000,
)
SIGNALS = (signal.SIGKILL, signal.SIGSEGV, signal.SIGABRT, signal.SIGRTMIN + 3, signal.SIGXFSZ, signal.SIGSTOP)


def maybe(share: float) -> bool:
    return chance.random() < share


def noise() -> bytes:
    return chance.choice(NOISE) * chance.choice((1, 1, 1, 20))


def go_astray() -> None:
    """Do one of the things that no server should do."""
    what = chance.randrange(9)
    if what == 0:
        os.kill(os.getpid(), chance.choice(SIGNALS))
    elif what == 1:
        os._exit(chance.randrange(256))
    elif what == 2:
        os.write(chance.choice((1, 2)), noise())
    elif what == 3 and os.fork() == 0:
        os.setsid()
        if maybe(0.5) and os.fork() != 0:
            os._exit(0)
        time.sleep(1000)
    elif what == 4:
        os.close(chance.choice((0, 1, 2)))
    elif what == 5:
        signal.signal(signal.SIGTERM, chance.choice((signal.SIG_IGN, signal.SIG_DFL)))
    elif what == 6:
        time.sleep(chance.choice((0.01, 0.3)))
    elif what == 7:
        for _ in range(chance.choice((10, 100_000))):
            os.write(2, b"x" * 65536)
    elif what == 8:
        os.setsid() if os.getpid() != os.getsid(0) else os.nice(1)


def ready(port: int) -> bytes:
    line: dict[str, object] = {"ready": True, "endpoint": f"tcp://127.0.0.1:{port}", "pid": os.getpid()}
    if maybe(0.15):
        line[chance.choice(("endpoint", "pid", "ready", "more"))] = chance.choice(
            (-1, 0, 1, 10**30, "", "--json=x", [], None)
        )
    text = json.dumps(line).encode() + b"\n"
    return text[: chance.randrange(len(text))] + noise() if maybe(0.1) else text


def end(*_: object) -> None:
    if maybe(0.4):
        go_astray()
    values: tuple[object, ...] = (0, -1, 10**40, 1.5, "x", None, [[]])
    totals = {
        name: chance.choice(values) for name in ("requests", "bytes_in", "bytes_out", "connections", "protocol_errors")
    }
    os.write(1, noise() if maybe(0.3) else json.dumps(totals).encode() + b"\n")
    os._exit(0 if maybe(0.7) else 5)


def serve(listener: socket.socket) -> None:
    listener.setblocking(False)
    peers: list[socket.socket] = []
    while True:
        try:
            peers.append(listener.accept()[0])
            peers[-1].setblocking(False)
        except BlockingIOError:
            time.sleep(0.001)
        for peer in list(peers):
            try:
                data = peer.recv(65536)
                if maybe(0.05):
                    go_astray()
                if maybe(0.02):
                    data = noise()
                peer.sendall(data) if data else peers.remove(peer)
            except BlockingIOError:
                continue
            except OSError:
                peers.remove(peer)


signal.signal(signal.SIGTERM, end)
if maybe(0.3):
    go_astray()
with socket.create_server(("127.0.0.1", 0)) as the_listener:
    os.write(1, ready(the_listener.getsockname()[1]))
    if maybe(0.2):
        go_astray()
    serve(the_listener)
sys.exit(0)
