"""A small echo server that keeps the program contract (protocol/WIRE.md), and at every third start has a fault.

    faulty_server.py --fault none|crash|corrupt|stall --starts FILE --fault-after SECONDS --listen tcp://HOST:PORT ...

`--starts` counts the starts in a file: of three the third is faulty, so that of 3 N starts exactly N are. The fault
comes `--fault-after` seconds after the first bytes that any client sends. `none` is the same server without it.

`--burn-per-read` makes it slow without a fault: so many seconds of CPU time for each read."""

import argparse
import asyncio
import collections
import fcntl
import json
import os
import resource
import signal
import socket
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

STALL_S = 0.3
CORRUPT_REPLIES = 3
CORRUPT_EVERY = 20
"""The server corrupts the first of the replies that follow and then one in this many, up to the third. A client that
goes on waiting for the true one is lost to the load, so there are few, and the others go on."""
ANNOUNCEMENT = "now comes the fault"
"""On stderr, before it."""
GRACE_S = 2.0


class FaultyServerParser(argparse.ArgumentParser):
    """One clear line, and exit code 2."""

    def error(self, message: str) -> NoReturn:
        print(f"faulty_server.py: {message}", file=sys.stderr)
        sys.exit(2)


def parse_options() -> argparse.Namespace:
    """The server's own and those of the contract; what `echo` in one thread has no use for is only checked."""
    parser = FaultyServerParser(allow_abbrev=False)
    parser.add_argument("--fault", choices=("none", *FAULTS), default="none")
    parser.add_argument("--starts", type=Path, required=True)
    parser.add_argument("--fault-after", type=float, required=True)
    parser.add_argument("--burn-per-read", type=float, default=0.0)
    parser.add_argument("--listen", default="tcp://127.0.0.1:0")
    parser.add_argument("--workload", choices=("echo",), default="echo")
    parser.add_argument("--threads", type=int, choices=(1,), default=1)
    parser.add_argument("--backlog", type=int, default=4096)
    parser.add_argument("--nodelay", choices=("on", "off"), default="on")
    parser.add_argument("--read-buffer", type=int, default=16384)
    parser.add_argument("--write-mode", choices=("gathered", "split"), default="gathered")
    parser.add_argument("--audience", choices=("others", "all"), default="others")
    parser.add_argument("--service-time", default="0ms")
    parser.add_argument("--service-kind", choices=("wait", "cpu"), default="wait")
    parser.add_argument("--max-frame", type=int, default=1 << 20)
    parser.add_argument("--outbox-limit", type=int, default=1 << 20)
    return parser.parse_args()


def count_start(file: Path) -> int:
    """How many starts came before this one."""
    descriptor = os.open(file, os.O_RDWR | os.O_CREAT, 0o644)
    with os.fdopen(descriptor, "r+") as starts:
        fcntl.flock(starts, fcntl.LOCK_EX)
        before = int(starts.read() or 0)
        starts.seek(0)
        starts.write(str(before + 1))
    return before


def burn(seconds: float) -> None:
    """Use so much CPU time."""
    end_s = time.process_time() + seconds
    while time.process_time() < end_s:
        pass


class Service:
    """What all connections share."""

    def __init__(self, options: argparse.Namespace, fault: Callable[["Service"], None] | None) -> None:
        self.options = options
        self.totals = {"requests": 0, "bytes_in": 0, "bytes_out": 0, "connections": 0, "protocol_errors": 0}
        self.totals["slow_closed"] = 0
        self.open: set[FaultyEcho] = set()
        self.to_corrupt: collections.deque[int] = collections.deque()
        """Which of the requests get a reply that is not theirs."""
        self._fault = fault

    def request(self, data: bytes) -> bytes:
        """The reply. The first request of all starts the clock of the fault."""
        if self._fault is not None:
            asyncio.get_running_loop().call_later(self.options.fault_after, self._have_fault, self._fault)
            self._fault = None
        burn(self.options.burn_per_read)
        self.totals["requests"] += 1
        self.totals["bytes_in"] += len(data)
        self.totals["bytes_out"] += len(data)
        if not self.to_corrupt or self.totals["requests"] < self.to_corrupt[0]:
            return data
        self.to_corrupt.popleft()
        return bytes([data[0] ^ 1]) + data[1:]

    def _have_fault(self, fault: Callable[["Service"], None]) -> None:
        print(f"{ANNOUNCEMENT}: {self.options.fault}", file=sys.stderr, flush=True)
        fault(self)


class FaultyEcho(asyncio.BufferedProtocol):
    """One connection."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._buffer = bytearray(service.options.read_buffer)
        self.transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        nodelay = self._service.options.nodelay == "on"
        transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, nodelay)
        self.transport = transport
        self._service.totals["connections"] += 1
        self._service.open.add(self)

    def get_buffer(self, sizehint: int) -> bytearray:
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        assert self.transport is not None
        self.transport.write(self._service.request(bytes(self._buffer[:nbytes])))

    def pause_writing(self) -> None:
        assert self.transport is not None
        self.transport.pause_reading()

    def resume_writing(self) -> None:
        assert self.transport is not None
        self.transport.resume_reading()

    def connection_lost(self, exc: Exception | None) -> None:
        self._service.open.discard(self)


def crash(_: Service) -> None:
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    os.kill(os.getpid(), signal.SIGSEGV)


def corrupt(service: Service) -> None:
    following = service.totals["requests"] + 1
    service.to_corrupt.extend(following + CORRUPT_EVERY * number for number in range(CORRUPT_REPLIES))


def stall(_: Service) -> None:
    time.sleep(STALL_S)


FAULTS: dict[str, Callable[[Service], None]] = {"crash": crash, "corrupt": corrupt, "stall": stall}


async def serve(options: argparse.Namespace) -> None:
    """Until SIGTERM; what is being written then is finished."""
    faulty = count_start(options.starts) % 3 == 2
    service = Service(options, FAULTS.get(options.fault) if faulty else None)
    loop = asyncio.get_running_loop()
    stop_requested = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop_requested.set)
    host, _, port = options.listen.removeprefix("tcp://").rpartition(":")
    server = await loop.create_server(lambda: FaultyEcho(service), host, int(port), backlog=options.backlog)
    endpoint = f"tcp://{host}:{server.sockets[0].getsockname()[1]}"
    print(json.dumps({"ready": True, "endpoint": endpoint, "pid": os.getpid()}), flush=True)
    await stop_requested.wait()
    server.close()
    for connection in tuple(service.open):
        assert connection.transport is not None
        connection.transport.close()
    deadline = loop.time() + GRACE_S
    while service.open and loop.time() < deadline:
        await asyncio.sleep(0)
    print(json.dumps(service.totals), flush=True)


if __name__ == "__main__":
    asyncio.run(serve(parse_options()))
