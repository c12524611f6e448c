"""Each attack has seeds: one is tried with every test run; with `--attack` all of them, as far as its time goes."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from random import Random
from typing import Final

import pytest

from netdyno.model.contestant import Contestant
from tests.support.chosen import chosen, startable

SEEDS = 40
BEGAN: Final = "NETDYNO_ATTACK_BEGAN"
NOT_TRIED: Final = "not tried: the time is over"

DrawContestant = Callable[[Random, str], Contestant]


def pytest_configure() -> None:
    """Record the time of the beginning, for the processes of pytest-xdist, too."""
    os.environ.setdefault(BEGAN, str(time.time()))


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "seed" in metafunc.fixturenames:
        metafunc.parametrize("seed", range(SEEDS if metafunc.config.getoption("--attack") else 1))


def seed_of(item: pytest.Item) -> int | None:
    seed = item.callspec.params.get("seed") if isinstance(item, pytest.Function) and hasattr(item, "callspec") else None
    return seed if isinstance(seed, int) else None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Every kind with one seed, then with the next: when the time is over, all kinds have come as far. What stays
    together is what has one seed, and not what is in one file, of which the longest would be waited for."""
    if not config.getoption("--attack"):
        return
    for item in items:
        if (seed := seed_of(item)) is not None:
            item.add_marker(pytest.mark.xdist_group(f"seed {seed}"))
    items.sort(key=lambda item: seed_of(item) or 0)


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Begin no attack when the time is over, but for the first seed, which every test run has."""
    if not item.config.getoption("--attack") or not seed_of(item):
        return
    if time.time() - float(os.environ[BEGAN]) >= item.config.getoption("--attack-seconds"):
        pytest.skip(NOT_TRIED)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    skipped = terminalreporter.stats.get("skipped", [])
    if left := sum(NOT_TRIED in str(report.longrepr) for report in skipped):
        terminalreporter.write_line(f"not tried: {left} attacks, for whom there was no time")


@pytest.fixture
def draw(request: pytest.FixtureRequest) -> DrawContestant:
    """A function that draws a server of those that speak a transport and can be started."""

    def drawn(chance: Random, transport: str) -> Contestant:
        servers = [
            contestant
            for contestant in chosen(request.config, "server")
            if not contestant.manifest.unsafe and transport in contestant.manifest.transports
        ]
        if not servers:
            pytest.skip(f"no server of {transport} was named")
        return startable(chance.choice(servers), "server")

    return drawn
