#!/usr/bin/env python3
"""What so many hosts of a load would cost the server's host and the controller: the figures of docs/many-machines.md.

    python bench/cluster_size.py [HOSTS ...]

The hosts are fakes within this process, which answer at once; what stands between the trial and them is that of a
cluster, but for TLS and the network. Each hands in the result of one real generator with 10 connections and a window of
two seconds. CPU is this process's, on whatever machine it runs. `followed` and `merged` are the server's host's; of one
histogram `merged` says how much of it is one's. The controller then reads the trial, and stores it: `told`.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from serving import serving

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python"))
from netdyno.base.paths import build_dir, generator_path
from netdyno.cluster import loads
from netdyno.cluster.requests import LoadAsked, LoadEnded, LoadHost, Reply, TrialDone
from netdyno.cluster.trial_helper import decoded
from netdyno.experiment.plan import Cell
from netdyno.model.load_result import LoadResult
from netdyno.trial.trial import skipped

HOSTS = (2, 10, 100)
EVENTS = ({"event": "window_start"}, {"event": "progress", "completed": 1, "seconds": 0.5}, {"event": "window_end"})


class Cost(NamedTuple):
    """Of a trial beside its window, in seconds of CPU but for `until_go_s`, which is time; what was handed in, by how
    many histograms; what the controller is told."""

    hosts: int
    until_go_s: float
    followed_s: float
    merged_s: float
    mib: float
    histograms: int
    told_s: float
    told_mib: float


class FakeHost:
    """One end of a connection to it; it does all at once."""

    def __init__(self, result: str) -> None:
        self._result = result
        self._says: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self.told_at_s = 0.0

    async def write(self, words: dict[str, Any]) -> None:
        if "wanted" in words:
            self._say({"event": "connected", "established": 10})
        elif "go" in words:
            self.told_at_s = time.monotonic()
            for event in EVENTS:
                self._say(event)
            ended = LoadEnded(code=0, said="", result=self._result)
            self._says.put_nowait({"line": msgspec.json.encode(ended) + b"\n", "last": True})

    async def read(self) -> dict[str, Any]:
        return await self._says.get()

    def _say(self, event: dict[str, Any]) -> None:
        self._says.put_nowait({"line": json.dumps(event).encode() + b"\n", "last": False})


class FakeHosts:
    """All of them, as loads.Reach."""

    def __init__(self, result: str) -> None:
        self._result = result
        self.reached: list[FakeHost] = []

    @asynccontextmanager
    async def connected(self, _address: str) -> AsyncIterator[FakeHost]:
        self.reached.append(FakeHost(self._result))
        yield self.reached[-1]

    async def ask_clock(self, _address: str) -> int:
        await asyncio.sleep(0)
        return time.monotonic_ns()


def real_result() -> str:
    """Of a generator that makes a half of a load."""
    with tempfile.TemporaryDirectory() as folder, serving([str(build_dir() / "servers" / "epoll-reactor")]) as served:
        path = Path(folder) / "result.json"
        words = [served.url, "-c", "20", "--share", "1/2", "--warmup", "200ms", "--duration", "2s"]
        command = [str(generator_path(build_dir())), *words, "--json", str(path)]
        subprocess.run(command, stdout=subprocess.DEVNULL, check=False)
        return path.read_text()


async def follow(hosts: int, result: str) -> tuple[float, LoadEnded]:
    """One load: how long it took until all were told to begin, and its last line."""
    fakes = FakeHosts(result)
    asked = LoadAsked(
        hosts=tuple(LoadHost(address=f"tls://{n}:8787", cores=(), realtime=False) for n in range(hosts)),
        foreign_load="count",
        words=("--share", f"1/{hosts}"),
        events=True,
    )

    async def tell(_line: bytes) -> None:
        pass

    began_s = time.monotonic()
    line = await loads.make(asked, fakes, tell)
    return max(one.told_at_s for one in fakes.reached) - began_s, msgspec.json.decode(line, type=LoadEnded)


def cost(hosts: int, result: str) -> Cost:
    began_s = time.process_time()
    until_go_s, ended = asyncio.run(follow(hosts, result))
    followed_s = time.process_time() - began_s
    text = (ended.result or "").encode()
    decoded(text)  # once for the imports
    began_s = time.process_time()
    load = decoded(text)
    merged_s = time.process_time() - began_s
    told = reply(load)
    began_s = time.process_time()
    done = msgspec.json.decode(told, type=Reply)
    assert isinstance(done, TrialDone)
    msgspec.json.encode(done.trial)
    told_s = time.process_time() - began_s
    mib, told_mib = (len(one) / 2**20 for one in (text, told))
    return Cost(hosts, until_go_s, followed_s, merged_s, mib, hosts * histograms(result), told_s, told_mib)


def histograms(result: str) -> int:
    """So many are in one. Pure."""
    return result.count('"histogram":') + len(msgspec.json.decode(result, type=LoadResult).timeseries.histograms)


def reply(load: LoadResult) -> bytes:
    """What the controller gets of a trial, but for what the server's host observed. Pure."""
    cell = Cell(block=1, position=0, scenario="load", contestant="epoll-reactor", levels={})
    trial = msgspec.structs.replace(skipped(cell, ""), status="valid", load=load)
    return msgspec.json.encode(TrialDone(trial=trial, log=""))


def table(costs: Sequence[Cost]) -> str:
    """A line each. Pure."""
    titles = ("until go", "followed", "merged", "a histogram", "results", "told", "of")
    lines = [f"{'hosts':>5}" + "".join(f"{title:>13}" for title in titles)]
    lines += [
        f"{one.hosts:>5}{one.until_go_s:>11.3f} s{one.followed_s:>11.3f} s{one.merged_s:>11.3f} s"
        f"{one.merged_s / one.histograms * 1e6:>10.0f} us{one.mib:>9.2f} MiB{one.told_s * 1e3:>10.1f} ms"
        f"{one.told_mib * 1024:>9.0f} KiB"
        for one in costs
    ]
    return "\n".join(lines)


def main() -> None:
    result = real_result()
    print(table([cost(int(hosts), result) for hosts in sys.argv[1:] or HOSTS]))


if __name__ == "__main__":
    main()
