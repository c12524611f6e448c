"""The audits by their kind, which says what follows from a failure (outcomes.py), each with the meaning of one, for
`netdyno list audits`. A test compares the names with the audits that exist."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

FaultKind = Literal["server", "instrument", "machine", "note"]

FAILURES: Mapping[FaultKind, Mapping[str, str]] = {
    "server": {
        "died": "The server ended by itself.",
        "completed": "No message was answered.",
        "killed": "SIGKILL ended the server, as a machine without memory does.",
        "ready": "The server was not ready in time.",
        "stalled": (
            "No answer in the window for 150 ms, four median response times and two rounds, whichever is longest."
        ),
        "verification": "A message was lost, duplicated, reordered or corrupt (where some may be lost: corrupt).",
        "bytes": "The bytes received are not those of the messages.",
        "connections": "Connections failed or ended early.",
        "server_alive": "A fresh connection got no correct answer at the end.",
        "server_totals": "The server's totals differ from the load's, strangers' connections aside.",
        "work": "A reply came before its service time was over, or the server used less CPU than requested.",
        "backend": "The server gave more replies than it asked its backend for.",
    },
    "instrument": {
        "generator": (
            "A thread used 85% of a core, or all threads 85% of the cores; or at the median or p99 the send lag "
            "was above a quarter of the response time (in rounds, half); or at the median the receive lag was "
            "above half."
        ),
        "achieved_rate": "The rate of an open loop was off by 1%, and the server was not overloaded.",
    },
    "machine": {
        "little": "Little's law, N = X * R, is off by 5%.",
        "plausible": "Counts disagree, or a figure exceeds what link, memory, cores and clock allow.",
        "window": "A client contestant was ended by a signal.",
        "harness_quiet": "The harness used 2% of a core and 10 ms.",
        "observation": (
            "The harness read the server's counters a tenth of the window and 30 ms off its ends, or after "
            "threads had ended."
        ),
        "steal": "The hypervisor took 2% of the cores' time and 25 ms.",
        "throttled": "A CPU quota held back 2% of the cores' time.",
        "foreign_load": "Other programs took 3% of the cores' time or half a core, at least 30 ms.",
        "canary": "The machine's speed was off its block's by a factor of 1.5.",
        "turns": "Over two thirds of the turns were dropped, or another trial of these turns was disturbed.",
        "side_by_side": (
            "A contestant used 1% of a core during other slices; if it does in most trials, it is measured alone."
        ),
        "rotation": (
            "A busy server's threads take longer than a slice to run once each; if they do in most trials, this level "
            "is measured alone."
        ),
        "backlog": (
            "Slices of an open loop ended with replies a fifth of a slice late; if they do in most trials, this "
            "level is measured without turns."
        ),
        "link": (
            "The relay sent one frame in a thousand late by a tenth of the delay (at least 1 ms), or dropped too many."
        ),
        "common_start": "The hosts may have begun 1% of the window apart.",
        "client_slower": "A host had twice the median response time of another, and 200 us more.",
        "client_stalled": "A host stalled while others were answered.",
        "stranger_load": "Connections that netdyno did not make were 5% of the server's work.",
        "uneven_load": "Other programs ran beside one contestant and spared another: no trial of them counts.",
    },
    "note": {
        "stationary": "Throughput provably moved by 25%, an open loop's median response time by 50%.",
        "unproven": "The server had a fault that a pause of the machine can cause, too.",
        "left_behind": "Programs outlived the server that had started them.",
        "strangers": "A program other than netdyno connected to the server.",
    },
}
"""Accounts that contradict each other (`little`, `plausible`) show nothing about a server: the measurement is
repeated."""
