"""The trap of UDP figures without what was lost: in the table and in the report no response time of a contestant whose
transport may lose messages stands anywhere without its loss (docs/traps.md)."""

from __future__ import annotations

import html
import re
from collections.abc import Callable
from functools import lru_cache

import pytest
from msgspec.structs import replace

from netdyno.analysis.analysis import analyse
from netdyno.analysis.found.run import Analysis
from netdyno.model.claim import Bound, Cells, Claim, Order
from netdyno.model.run import Run
from netdyno.present import report
from netdyno.present.prose import claims
from tests.support.builders.analysed import analysed
from tests.support.builders.made_run import EPOLL, LOST, REUSEPORT, UDP, ZMQ, messages_run
from tests.support.printed import print_table
from tests.support.undrawn import undrawn

DURATION = re.compile(r"\d (ns|µs|ms|s)\b")
LOSS = re.compile(r"\d%|none lost|lost none|\b(lost|corrupt)\b")
COSTS = "of server CPU per message"
CLAIMED = re.compile(r"; claimed .*")
"""A threshold that a claim names, and no figure of this run."""


@lru_cache
def with_claims() -> Run:
    """Claims on the latency of those over UDP: one test names the contestants, one does not."""
    run = messages_run()
    cells = Cells(scenario="realtime")
    order = Order(metric="mean", cells=cells, along="contestant", direction="rising", groups=((REUSEPORT,), (UDP,)))
    bound = Bound(
        metric="p99", cells=Cells(scenario="realtime", at={"contestant": (ZMQ,)}), side="below", threshold=9e9
    )
    claims = (Claim(id="T1", text="So it is", tests=(order,)), Claim(id="T2", text="And so", tests=(bound,)))
    return replace(run, experiment=replace(run.experiment, claims=claims))


@lru_cache
def with_clients() -> Run:
    """The same with the client as a factor, so that there is a table of pairs."""
    run = messages_run()
    (scenario,) = run.experiment.scenarios
    scenario = replace(scenario, factors=scenario.factors | {"client": ("netdyno-load",)})
    trials = tuple(replace(trial, levels=trial.levels | {"client": "netdyno-load"}) for trial in run.trials)
    return replace(run, experiment=replace(run.experiment, scenarios=(scenario,)), trials=trials)


RUNS: dict[str, Callable[[], Run]] = {
    "claims": with_claims,
    "clients": with_clients,
    "everybody lost": lambda: messages_run(5, True),
}


def naked(pieces: list[str]) -> list[str]:
    """Pieces of text with a lossy contestant, a duration and no word on loss."""
    lossy = [name for name in LOST if name != EPOLL]
    return [
        piece
        for piece in pieces
        if any(name in piece for name in lossy)
        and DURATION.search(CLAIMED.sub("", piece))
        and not LOSS.search(piece)
        and COSTS not in piece
    ]


def pieces_of_the_report(analysis: Analysis) -> list[str]:
    """Rows, items and paragraphs as text, and what figures say in words, contestant by contestant."""
    with undrawn():
        page = report.render_html(analysis).partition("<body>")[2].partition('<script id="data"')[0]
    page = re.sub(r'<details class="work">.*?</details>', "", page, flags=re.DOTALL)  # costs of the server alone
    spoken = [text for text in re.findall(r'aria-label="([^"]*)"', page) if not text.startswith("Server CPU")]
    rows = [re.sub(r"<[^>]*>", " ", piece) for piece in re.split(r"</(?:tr|li|p|dd|dt)>", page)]
    return [html.unescape(piece) for piece in (*rows, *(part for text in spoken for part in text.split("; ")))]


@pytest.mark.parametrize("name", RUNS)
def test_no_response_time_stands_in_the_table_without_its_loss(name: str) -> None:
    lines = print_table(analysed(RUNS[name]()), 2000).splitlines()
    assert sum(UDP in line and bool(DURATION.search(line)) for line in lines) >= 1, "the test sees no such line"
    assert naked(lines) == []


@pytest.mark.parametrize("name", RUNS)
def test_no_response_time_stands_in_the_report_without_its_loss(name: str) -> None:
    pieces = pieces_of_the_report(analysed(RUNS[name]()))
    assert sum(UDP in piece and bool(DURATION.search(piece)) for piece in pieces) >= 10, "the test sees no such piece"
    assert naked(pieces) == []


def test_a_claim_on_latencies_tells_the_loss_of_each_that_may_lose_messages() -> None:
    order, bound = analyse(with_claims()).claims
    assert claims.describe_losses(order) == (
        f"{UDP} lost up to 0.02% of its messages in a trial, and latencies leave those out",
        f"{REUSEPORT} lost up to 12% of its messages in a trial, and latencies leave those out",
    )
    assert claims.describe_losses(bound) == (f"{ZMQ} lost none of its messages",)


def test_a_pair_of_server_and_client_tells_its_loss() -> None:
    rows = [
        line
        for line in print_table(analyse(with_clients()), 2000).splitlines()
        if re.match(rf"{REUSEPORT} .*12% lost", line)
    ]
    assert len(rows) == 1


def test_this_test_sees_a_latency_without_its_loss() -> None:
    assert naked([f"{UDP} has the lowest mean: 3.4 ms", f"{UDP} (0.02% lost): 3.4 ms", f"{EPOLL}: 3.4 ms"]) == [
        f"{UDP} has the lowest mean: 3.4 ms"
    ]
