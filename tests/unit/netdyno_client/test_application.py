"""The application around a Python client sends each event in time, whatever its loop does."""

from __future__ import annotations

import json
import os
from time import monotonic_ns

from msgspec.structs import replace

from netdyno_client.application import Application
from netdyno_client.journal import Journal
from netdyno_client.plan import parse_client_plan
from netdyno_client.recorder import Window

MS = 1_000_000


def test_a_loop_that_is_blocked_announces_its_window_nevertheless() -> None:
    reading, writing = os.pipe()
    plan = replace(parse_client_plan("test", ["tcp://127.0.0.1:9"]), events_fd=writing)
    application = Application(plan, Journal(plan))
    now = monotonic_ns()
    application.connected()
    application.begin(Window(now + 10 * MS, now + 20 * MS))
    written = b""
    while written.count(b"\n") < 3:  # the application wakes by itself
        written += os.read(reading, 4096)
    assert [json.loads(line)["event"] for line in written.splitlines()] == ["connected", "window_start", "window_end"]
    assert monotonic_ns() >= now + 20 * MS
    os.close(reading)
    os.close(writing)
