"""Level ground, as in tests/contract/tcp/test_level_ground.py, for what makes the load: clients and the generator."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence

import pytest

from netdyno.kit.paths import build_dir, generator_path
from netdyno.measure.machine.process import Process
from netdyno.model.contestant import Contestant
from tests.support.ground import CORE, TUNED, expect_level
from tests.support.running_client import ENDLESS
from tests.support.server import serving


def test_every_thread_of_a_client_stands_on_the_same_ground(
    client: Contestant, server: Contestant, monkeypatch: pytest.MonkeyPatch
) -> None:
    _expect_level_under_way(client.command, server, monkeypatch)


def test_every_thread_of_the_generator_stands_on_the_same_ground(
    server: Contestant, monkeypatch: pytest.MonkeyPatch
) -> None:
    generator = generator_path(build_dir())
    assert generator.is_file(), f"not built: {generator}"
    _expect_level_under_way([str(generator)], server, monkeypatch, "--threads", "2")


def _expect_level_under_way(
    command: Sequence[str], server: Contestant, monkeypatch: pytest.MonkeyPatch, *options: str
) -> None:
    for name, value in TUNED.items():
        monkeypatch.setenv(name, value)
    arguments = ["--workload", "rpc", "--size", "64", "-c", "4", *options, *ENDLESS]
    reading, writing = os.pipe()
    with (
        serving(server.command, "--workload", "rpc") as target,
        os.fdopen(reading, "rb") as events,
        tempfile.NamedTemporaryFile() as output,
    ):
        url = f"tcp://{target.address[0]}:{target.address[1]}"
        full = [*command, url, *arguments, "--json", os.devnull, "--events-fd", str(writing)]
        with Process(full, (CORE,), output, name="load", pass_fds=[writing]) as load:
            os.close(writing)
            for event in events:
                if b'"window_start"' in event:
                    break
            expect_level(load.pid, command)
