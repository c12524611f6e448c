"""A verdict on a claim in words: the comparison, its result, and why there is no verdict."""

from __future__ import annotations

import re

import pytest
from msgspec.structs import replace

from netdyno.model.claim import Cells
from netdyno.model.verdicts import (
    GeneratorAtLimit,
    Lacking,
    NotCounted,
    NotPlanned,
    OnlyOne,
    Refused,
    SeveralHosts,
    SingleLevel,
    Skipped,
    TooFewCores,
)
from netdyno.present.prose import claims
from netdyno.present.prose.claim_verdicts import describe_outcome, name_verdict
from tests.support.builders.made_claims import RATIO, ClaimTruth, judged, lossy_coroutines, made
from tests.support.builders.made_run import COROUTINES, LOCK

CELLS = Cells(scenario="echo", at={"contestant": (LOCK,), "connections": (10,)})
FASTER = f"[claim.test]{RATIO}above = 2\n"
EVERYWHERE = f"{FASTER}every = true\n"
TREND = f"""
[claim.test]
kind = "trend"
metric = "switches"
cells = {{ contestant = "{LOCK}" }}
along = "connections"
direction = "rises"
"""
SLOWER = f"""
[claim.test]
kind = "ratio"
metric = "p99"
a.contestant = "{COROUTINES}"
b.contestant = "{LOCK}"
below = 0.8
"""


BOUNDS = "the generator was at its limit there, and bounds give no verdict here"


def faster_by(factor: float) -> ClaimTruth:
    return lambda name, _: 100 * factor if name == COROUTINES else 100


def at_connections(figure: float) -> ClaimTruth:
    return lambda _, levels: figure * int(levels["connections"])


@pytest.mark.parametrize(
    ("lacking", "words"),
    [
        (TooFewCores(4, 2), "it needs 4 cores, and there were 2"),
        (TooFewCores(4, 1), "it needs 4 cores, and there was 1"),
        (TooFewCores(2, 1, of_server=True), "it needs 2 cores for the server, and there was 1"),
        (TooFewCores(4, None), "it needs 4 cores, and their number was not recorded"),
        (TooFewCores(4, 1, to="refute"), "to be refuted it needs 4 cores, and there was 1"),
        (OnlyOne("second host"), "it needs a second host, and this run had only one"),
        (OnlyOne("second host", "confirm"), "to be confirmed it needs a second host, and this run had only one"),
        (SeveralHosts(), "it needs one host, and this run had several"),
        (Refused({LOCK: "unsafe"}), f"{LOCK} is unsafe and in no claim"),
        (Refused({"a": "unsafe", "b": "not ranked"}), "a and b are not ranked or unsafe and in no claim"),
        (SingleLevel("connections"), "this run has only one level of 'connections' there"),
        (NotPlanned(LOCK, CELLS), f"this run has no trial of {LOCK} in 'echo' at 10 connections"),
        (NotPlanned(None, Cells(scenario="echo", at={})), "this run has no trial of any contestant in 'echo'"),
        (Skipped(LOCK, "Folly not found: see its README"), f"{LOCK} was skipped: Folly not found: see its README"),
        (GeneratorAtLimit(LOCK), f"with {LOCK} {BOUNDS}"),
        (GeneratorAtLimit(None), BOUNDS),
        (NotCounted("lib/net", "no source files"), "the code of lib/net was not counted: no source files"),
        (NotCounted(LOCK, None), f"the code of {LOCK} was not counted"),
    ],
)
def test_what_a_run_did_not_have_is_named(lacking: Lacking, words: str) -> None:
    assert claims.describe_lack(lacking) == words


def test_a_comparison_names_both_sides_once_and_its_effect_with_the_interval() -> None:
    in_one_cell = f'{FASTER}cells = {{ connections = 10, both.nodelay = "on" }}\n'
    claim = judged(made(in_one_cell, "throughput", faster_by(3)))
    (check,) = claim.checks
    what = f"throughput of {COROUTINES}, 10 connections, nodelay on on both sides against {LOCK}"
    assert claims.describe_comparison(check, claim.scenarios) == what
    assert claims.format_claimed_effect(check.step) == "above ×2"  # noqa: RUF001
    assert claims.format_effect(check).startswith("×3.00 [×2.")  # noqa: RUF001
    assert claims.list_figures(check) == ("324/s", "108/s")
    assert claims.explain_no_verdict(claim) == ""
    figures = "means of the trials: 324/s against 108/s"
    assert describe_outcome(claim) == f"{what}: {claims.format_effect(check)} ({figures}); claimed above ×2"  # noqa: RUF001


def test_what_each_side_is_divided_by_is_stated_and_its_figures_are_times_that() -> None:
    grows = (
        '[claim.test]\nkind = "order"\nmetric = "p99"\ncells = { connections = 1000 }\nover = { connections = 10 }\n'
        f'along = "contestant"\nrising = ["{LOCK}", "{COROUTINES}"]\n'
    )
    (check,) = judged(made(grows, "p99", at_connections(1e6))).checks
    assert claims.describe_comparison(check, {}).endswith(f" against {LOCK}, each divided by that at 10 connections")
    assert all(figure.startswith("×") for figure in claims.list_figures(check))  # noqa: RUF001


def test_among_several_scenarios_a_side_says_which_is_its_own() -> None:
    side = Cells(scenario="study: echo", at={"contestant": (LOCK,)})
    assert claims.describe_cells(side, {}) == LOCK
    assert claims.describe_cells(side, {"study: echo": "echo"}) == f"{LOCK}, in echo"
    assert claims.describe_cells(side, {"study: echo": "echo"}, {claims.SCENARIO}) == LOCK
    (check,) = judged(made(f"[claim.test]{RATIO}above = 2\n", "throughput", faster_by(3))).checks
    assert check.paired_by == ()
    of_both = f"throughput of {COROUTINES}, in echo against {LOCK}"
    assert claims.describe_comparison(check, {check.step.a.scenario: "echo"}) == of_both


def test_an_undecided_claim_says_why_its_first_comparison_is_open_and_how_many_more_are() -> None:
    few = judged(made(FASTER, "throughput", faster_by(3), blocks=4))
    assert claims.explain_no_verdict(few).endswith(f"against {LOCK}: too few blocks: 4, and a verdict needs 5")
    near = judged(made(FASTER, "throughput", faster_by(2)))
    assert " is not proven different from the threshold (p = " in claims.explain_no_verdict(near)
    assert claims.explain_no_verdict(near).endswith("; if these figures hold, even 1000 blocks would give no verdict")
    almost = judged(made(FASTER, "throughput", faster_by(2.002)))
    assert re.search(r"; if these figures hold, \d+ blocks would give a verdict$", claims.explain_no_verdict(almost))
    in_each = judged(made(EVERYWHERE, "throughput", faster_by(2)))
    assert claims.explain_no_verdict(in_each).endswith("; and 5 more are open")
    zero = judged(made(TREND, "switches", at_connections(0)))
    assert "a server context switches per message of 0 has no ratio" in claims.explain_no_verdict(zero)
    run = made(FASTER, "throughput", faster_by(3))
    failed = judged(replace(run, trials=tuple(replace(trial, load=None, status="failed") for trial in run.trials)))
    assert claims.explain_no_verdict(failed).endswith("no block has all the figures to compare")
    assert claims.format_effect(failed.checks[0]) == "–"  # noqa: RUF001


def test_what_fails_but_not_beyond_chance_among_several_says_so() -> None:
    """In noise that leaves each of six comparisons p = 2.7%."""

    def truth(name: str, _: object) -> float:
        return 100

    run = made(
        EVERYWHERE,
        "throughput",
        truth,
        blocks=6,
        noise=lambda block, number: 0.5 * (-1) ** block if number % 3 == 0 else 0.0,
    )
    assert "a failure is not proven among 6 comparisons (p = 0." in claims.explain_no_verdict(judged(run))


def test_a_claim_that_is_not_testable_says_what_was_found_nevertheless() -> None:
    keys = 'needs-to-refute = ["cores >= 4"]'
    claim = judged(made(SLOWER, "p99", lambda *_: 1e6, keys=keys))
    assert claim.verdict == "not_testable"
    assert describe_outcome(claim).startswith(
        "to be refuted it needs 4 cores, and there were 2. Found: 99th-percentile response time"
    )
    assert describe_outcome(claim).endswith("; claimed below ×0.8")  # noqa: RUF001
    skipped = judged(made(SLOWER, "p99", lambda *_: 1e6, keys='needs = ["cores >= 4"]'))
    assert describe_outcome(skipped) == "it needs 4 cores, and there were 2"


def test_a_sentence_about_other_systems_has_a_verdict_on_this_one() -> None:
    keys = 'published-on = "Windows and macOS"'
    run = made(FASTER, "throughput", faster_by(3), keys=keys)
    claim = judged(replace(run, environment={**run.environment, "system": "Debian GNU/Linux 12"}))
    assert name_verdict(claim) == "confirmed on Linux"
    assert claims.name_systems(claim) == (
        "published for Windows and macOS; this verdict is about Linux (Debian GNU/Linux 12)"
    )
    assert name_verdict(judged(made(FASTER, "throughput", faster_by(2), keys=keys))) == "undecided"
    plain = judged(made(FASTER, "throughput", faster_by(3)))
    assert (name_verdict(plain), claims.name_systems(plain)) == ("confirmed", "")


def test_a_difference_from_the_source_stands_beside_the_verdict() -> None:
    keys = 'differs = "the source set no TCP_NODELAY"'
    claim = judged(made(FASTER, "throughput", faster_by(3), keys=keys))
    assert claims.name_difference(claim) == "differs from the source: the source set no TCP_NODELAY"
    assert claims.name_difference(judged(made(FASTER, "throughput", faster_by(3)))) == ""


def test_what_was_counted_on_both_sides_stands_beside_without_what_they_share() -> None:
    claim = judged(made(FASTER, "throughput", faster_by(3), keys='why = "delayed-acks"'))
    assert claims.describe_counts(claim) == f"Delayed ACKs per 1,000 messages: 4.00 ({COROUTINES}), 4.00 ({LOCK})."
    queue = judged(made(EVERYWHERE, "throughput", faster_by(3), keys='why = "listen-overflows"'))
    assert claims.describe_counts(queue) == (
        f"Overflows of the listen queue per 1,000 connects: 30.0 ({COROUTINES}), 30.0 ({LOCK})."
    )
    ends = claims.describe_counts(judged(made(TREND, "switches", at_connections(1), keys='why = "switches"')))
    assert ends.startswith("Server context switches per message: ")
    assert ends.index("(1000 connections)") < ends.index("(10 connections)"), "what both share is not repeated"
    assert "100 connections" not in ends.replace("1000 connections", "")
    assert claims.describe_counts(judged(made(FASTER, "throughput", faster_by(3)))) == ""


def test_a_counter_that_was_not_read_is_not_zero() -> None:
    run = made(FASTER, "throughput", faster_by(3), keys='why = "delayed-acks"')
    claim = judged(replace(run, trials=tuple(replace(trial, kernel={}) for trial in run.trials)))
    assert claims.describe_counts(claim) == (
        f"Delayed ACKs per 1,000 messages: not recorded ({COROUTINES}), not recorded ({LOCK})."
    )


def test_a_latency_beside_which_messages_were_lost_says_so() -> None:
    claim = judged(made(SLOWER, "p99", lambda name, _: 1e6 if name == COROUTINES else 2e6, change=lossy_coroutines))
    assert claim.verdict == "confirmed"
    assert claims.describe_losses(claim) == (
        f"{COROUTINES} lost up to 12% of its messages in a trial, and latencies leave those out",
    )
    assert [figure.endswith(" (12% lost)") for figure in claims.list_figures(claim.checks[0])] == [True, False]


def test_where_the_generator_was_at_its_limit_is_reported_in_order() -> None:
    beyond = (Cells(scenario="a", at={"connections": (1000, 100)}), Cells(scenario="a", at={"connections": (700,)}))
    assert claims.describe_generator_limit(beyond) == (
        "the generator could not offer the rate at 100, 700 or 1000 connections"
    )
