"""The traps of docs/traps.md that need real programs and belong to no suite of their own."""

from __future__ import annotations

import json
import re

import pytest

from netdyno.kit.paths import ROOT, build_dir, generator_path
from netdyno.measure.trial.load import INVALID_LOAD
from netdyno.question import experiment
from netdyno.question.contestants.contestants import discover, find_by_name
from tests.support.server import run, serving

pytestmark = pytest.mark.calm

PAGE = (ROOT / "docs" / "traps.md").read_text()
NAGLE = ("--nodelay", "off")
SPLIT = ("--write-mode", "split")
DELAYED_ACK_MS = 40
"""TCP_DELACK_MIN (include/net/tcp.h). Part of it may have run before the message that waits for it was sent."""


def median_ms(server: tuple[str, ...], load: tuple[str, ...]) -> float:
    """The median response time of one connection, in milliseconds; both sides have the same way to write."""
    options = ("--workload", "rpc", "-c", "1", "--warmup", "200ms", "--duration", "1s", *load)
    command = find_by_name(discover(), "threads-global-lock").command
    with serving(command, "--workload", "rpc", *server) as served:
        done = run((str(generator_path(build_dir())), served.endpoint), *options, "--json", "-")
        assert done.code in {0, INVALID_LOAD}, done
        result = json.loads(done.stdout)
    assert result["requests"]["completed"] > 0
    return float(result["latency"]["response_ns"]["p50"]) / 1e6


@pytest.mark.needs_build
def test_two_writes_before_a_read_wait_for_a_delayed_ack_on_each_side() -> None:
    both = (*NAGLE, *SPLIT)
    stalled = median_ms(both, both)
    assert stalled >= 2 * (DELAYED_ACK_MS - 5)
    assert median_ms(("--nodelay", "on", *SPLIT), both) >= DELAYED_ACK_MS - 5, "one side alone stalls as well"


@pytest.mark.needs_build
@pytest.mark.parametrize("ways", [("--nodelay", "on", *SPLIT), (*NAGLE, "--write-mode", "gathered")], ids=" ".join)
def test_no_delay_or_one_write_and_none_waits_for_an_ack(ways: tuple[str, ...]) -> None:
    assert median_ms(ways, ways) < DELAYED_ACK_MS / 2


# --- the page -----------------------------------------------------------------------------------------------------


def test_every_experiment_of_a_trap_is_reported_and_short() -> None:
    traps = {name for name in experiment.list_names(ROOT / "experiments") if name.startswith("trap-")}
    assert traps
    assert set(re.findall(r"\./netdyno run (trap-[a-z-]+)", PAGE)) == traps


def test_the_page_names_tests_and_files_that_exist() -> None:
    named = re.findall(r"`((?:tests|docs|servers|experiments|python|common)/[\w./-]+?)(?:::(\w+))?`", PAGE)
    assert len(named) >= 10
    for path, test in named:
        file = ROOT / path
        assert file.exists(), path
        if test:
            assert f"def {test}(" in file.read_text(), f"{path} has no {test}"
