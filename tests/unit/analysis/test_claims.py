"""Verdicts on claims, from made-up data whose truth is known: every kind of test confirmed, refuted and undecided."""

from __future__ import annotations

import math
from collections.abc import Collection

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from netdyno.analysis.claims.judge_claims import judge_claims
from netdyno.kit.statistics import stats
from netdyno.model import outcomes
from netdyno.model.base import type_level
from netdyno.model.contestant import About, CodeSize
from netdyno.model.load_result import Audit, GeneratorThread
from netdyno.model.metrics import CLAIMED, METRICS
from netdyno.model.observation import Pinning
from netdyno.model.run import Run
from netdyno.model.trial import Trial
from netdyno.model.verdicts import (
    GeneratorAtLimit,
    JudgedClaim,
    Lacking,
    NotCounted,
    NotPlanned,
    OnlyOne,
    SettledVerdict,
    SeveralHosts,
    Skipped,
    TooFewCores,
)
from netdyno.present.prose import claims as words
from netdyno.question import experiment
from tests.support.builders.made_claims import NAMES, ClaimTruth, Levels, judged, lossy_coroutines, made, text
from tests.support.builders.made_run import COROUTINES, LOCK, SNAPSHOT

FASTER = f"""
[claim.test]
kind = "ratio"
metric = "throughput"
a.contestant = "{COROUTINES}"
b.contestant = "{LOCK}"
above = 2
"""
EVERYWHERE = f"{FASTER}every = true\n"
LESS_CPU = f"""
[claim.test]
kind = "ratio"
metric = "cpu"
cells.contestant = "{COROUTINES}"
a.both.nodelay = "on"
b.both.nodelay = "off"
below = 0.8
"""
ORDER = f"""
[claim.test]
kind = "order"
metric = "p99"
along = "contestant"
rising = ["{COROUTINES}", ["{LOCK}", "{SNAPSHOT}"]]
"""
ORDER_OF_SHARES = f"""
[claim.test]
kind = "order"
metric = "connected"
along = "contestant"
falling = ["{SNAPSHOT}", "{LOCK}"]
"""
TREND = f"""
[claim.test]
kind = "trend"
metric = "switches"
cells = {{ contestant = "{LOCK}" }}
along = "connections"
direction = "rises"
"""
FALL = TREND.replace("switches", "throughput").replace("rises", "falls")
TREND_OF_SHARES = TREND.replace("switches", "lost")
FLAT = f"""
[claim.test]
kind = "flat"
metric = "p50"
cells.contestant = "{COROUTINES}"
along = "connections"
within = 1.5
"""
FLAT_SHARES = FLAT.replace("p50", "connected").replace("1.5", "0.1")
FLAT_CODE = f"""
[claim.test]
kind = "flat"
metric = "lines"
cells.contestant = ["{COROUTINES}", "{LOCK}"]
along = "contestant"
within = 1.25
"""
CODE_OF_CLIENTS = FLAT_CODE.replace("contestant", "client")
GROWS_MOST = f"""
[claim.test]
kind = "order"
metric = "p99"
cells = {{ connections = 1000 }}
over = {{ connections = 10 }}
along = "contestant"
falling = ["{COROUTINES}", ["{LOCK}", "{SNAPSHOT}"]]
"""
GAINS_MORE = f"""
[claim.test]
kind = "ratio"
metric = "throughput"
cells = {{ contestant = "{COROUTINES}", both.nodelay = "on" }}
a.connections = 1000
b.connections = 10
over.contestant = "{LOCK}"
above = 2
"""
BOUND = f"""
[claim.test]
kind = "bound"
metric = "mean"
cells = {{ contestant = "{LOCK}", connections = [100, 1000] }}
above = "4s"
"""
BOUND_OF_SHARES = f"""
[claim.test]
kind = "bound"
metric = "connected"
cells = {{ contestant = "{LOCK}", connections = 1000 }}
below = 0.5
"""


def by_name(**figures: float) -> ClaimTruth:
    """The same at every level: of coroutines, of lock, of snapshot."""
    keys = {COROUTINES: "coroutines", LOCK: "lock", SNAPSHOT: "snapshot"}
    return lambda name, _: figures.get(keys[name], 1.0)


def by_connections(ten: float, hundred: float, thousand: float) -> ClaimTruth:
    figures = {10: ten, 100: hundred, 1000: thousand}
    return lambda _, levels: figures[int(levels["connections"])]


def by_nodelay(on: float, off: float) -> ClaimTruth:
    return lambda _, levels: on if levels["both.nodelay"] == "on" else off


def but_at_1000(coroutines: float, lock: float, there: float) -> ClaimTruth:
    """Coroutines are `there` at 1000 connections."""

    def truth(name: str, levels: Levels) -> float:
        if name != COROUTINES:
            return lock
        return there if levels["connections"] == 1000 else coroutines

    return truth


def growing(coroutines: float, rest: float, *, from_coroutines: float = 1.0) -> ClaimTruth:
    """How many times the figure at 10 connections that at 1000 is; the others have a million there."""

    def truth(name: str, levels: Levels) -> float:
        first, growth = (from_coroutines, coroutines) if name == COROUTINES else (1.0, rest)
        return 1e6 * first * (growth if levels["connections"] == 1000 else 1.0)

    return truth


CASES = {
    "ratio": (FASTER, "throughput", by_name(coroutines=300, lock=100), by_name(coroutines=150, lock=100)),
    "ratio in every cell": (EVERYWHERE, "throughput", but_at_1000(300, 100, 250), but_at_1000(300, 100, 100)),
    "ratio of levels": (LESS_CPU, "cpu", by_nodelay(600, 1000), by_nodelay(900, 1000)),
    "order": (
        ORDER,
        "p99",
        by_name(coroutines=1e6, lock=2e6, snapshot=1.5e6),
        by_name(coroutines=1e6, snapshot=7e5, lock=2e6),
    ),
    "order of shares": (ORDER_OF_SHARES, "connected", by_name(lock=0.2, snapshot=0.9), by_name(lock=0.9, snapshot=0)),
    "trend": (TREND, "switches", by_connections(1, 1.2, 1.5), by_connections(1, 2, 1.5)),
    "trend that falls": (FALL, "throughput", by_connections(900, 800, 400), by_connections(400, 500, 600)),
    "trend of shares": (TREND_OF_SHARES, "lost", by_connections(0, 0.01, 0.2), by_connections(0.2, 0.1, 0)),
    "flat": (FLAT, "p50", by_connections(1e6, 1.2e6, 8e5), by_connections(1e6, 1.2e6, 2e6)),
    "flat shares": (FLAT_SHARES, "connected", by_connections(0.9, 0.85, 0.95), by_connections(0.9, 0.85, 0.5)),
    # The largest at the end need not have grown most.
    "order of growth": (GROWS_MOST, "p99", growing(3, 2, from_coroutines=0.1), growing(2, 3, from_coroutines=10)),
    "ratio of ratios": (GAINS_MORE, "throughput", growing(9, 3, from_coroutines=0.1), growing(3, 3)),
    "bound": (BOUND, "mean", by_name(lock=20e9), by_name(lock=1e9)),
    "bound of shares": (BOUND_OF_SHARES, "connected", by_name(lock=0.15), by_name(lock=0.9)),
}
ON_THE_THRESHOLD = {
    "ratio": by_name(coroutines=200, lock=100),
    "ratio in every cell": but_at_1000(300, 100, 200),
    "ratio of levels": by_nodelay(800, 1000),
    "order": by_name(coroutines=1e6, lock=2e6, snapshot=1e6),
    "order of shares": by_name(lock=0.5, snapshot=0.5),
    "trend": by_connections(1, 1, 1),
    "trend that falls": by_connections(500, 500, 500),
    "trend of shares": by_connections(0.1, 0.1, 0.1),
    "flat": by_connections(1e6, 1.5e6, 1e6),
    "flat shares": by_connections(0.9, 0.8, 0.9),
    "order of growth": growing(3, 3, from_coroutines=10),
    "ratio of ratios": growing(6, 3),
    "bound": by_name(lock=4e9),
    "bound of shares": by_name(lock=0.5),
}


# --- each kind of test -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", CASES)
def test_data_that_agrees_confirms(case: str) -> None:
    tests, metric, agrees, _ = CASES[case]
    claim = judged(made(tests, metric, agrees))
    assert (claim.verdict, claim.lacking, claim.open_checks) == ("confirmed", None, ())
    assert all(check.interval is not None for check in claim.checks)


@pytest.mark.parametrize("case", CASES)
def test_data_that_disagrees_refutes(case: str) -> None:
    tests, metric, _, disagrees = CASES[case]
    claim = judged(made(tests, metric, disagrees))
    assert (claim.verdict, claim.lacking) == ("refuted", None)
    assert claim.decisive is not None
    assert claim.decisive.outcome == "fails"


@pytest.mark.parametrize("case", CASES)
def test_data_on_the_threshold_decides_nothing(case: str) -> None:
    tests, metric, _, _ = CASES[case]
    claim = judged(made(tests, metric, ON_THE_THRESHOLD[case]))
    assert claim.verdict == "undecided"
    assert claim.open_checks[0].why_open == "near"


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("which", [2, 3])
def test_few_blocks_decide_nothing(case: str, which: int) -> None:
    tests, metric, *truths = CASES[case]
    claim = judged(made(tests, metric, truths[which - 2], blocks=4))
    assert claim.verdict == "undecided"
    assert claim.open_checks[0].why_open in ("few_blocks", "unproven")


def test_four_blocks_give_no_verdict_however_many_cells_agree() -> None:
    claim = judged(made(FASTER, "throughput", by_name(coroutines=300, lock=100), blocks=4))
    assert claim.checks[0].interval is None
    assert (claim.verdict, claim.checks[0].pairs) == ("undecided", 24)
    assert (claim.checks[0].why_open, claim.checks[0].blocks) == ("few_blocks", 4)
    assert judged(made(FASTER, "throughput", by_name(coroutines=300, lock=100), blocks=5)).verdict == "confirmed"


def test_code_has_no_spread_and_is_judged_from_any_number_of_blocks() -> None:
    for lock, verdict in ((110, "confirmed"), (200, "refuted"), (10, "refuted"), (125, "undecided")):
        assert judged(made(FLAT_CODE, "lines", by_name(coroutines=100, lock=lock), blocks=1)).verdict == verdict


def test_the_code_of_clients_is_judged_where_the_cells_name_clients() -> None:
    run = made(FLAT_CODE, "lines", by_name(coroutines=100, lock=500), blocks=1)
    both = f'[scenario.factors]\nclient = ["{COROUTINES}", "{LOCK}"]'
    across_clients = experiment.parse(text(CODE_OF_CLIENTS).replace("[scenario.factors]", both), "made", "made.toml")
    sizes = {COROUTINES: 100, LOCK: 110}
    clients = [
        About(
            kind="client", name=name, code=CodeSize(files=1, lines=lines, functions=1, complexity=1, complexity_max=1)
        )
        for name, lines in sizes.items()
    ]
    with_clients = replace(run, experiment=across_clients, about=(*run.about, *clients))
    claim = judged(with_clients)
    assert claim.verdict == "confirmed"
    assert claim.checks[0].figures == pytest.approx((110, 100))
    claim = judged(replace(with_clients, about=run.about))
    assert (claim.verdict, claim.lacking) == ("not_testable", NotCounted(LOCK, None))


def test_the_code_that_a_family_shares_counts_with_each_of_its_members() -> None:
    """A loop that stands in servers/_shared/ is as much a server's code as one that stands in its folder."""
    run = made(FLAT_CODE, "lines", by_name(coroutines=40, lock=100), blocks=1)
    assert judged(run).verdict == "refuted"
    size = CodeSize(files=1, lines=60, functions=1, complexity=1, complexity_max=1)
    shared = About(kind="shared", name="servers/_shared/epoll", code=size)
    about = [replace(entry, family=(shared.name,)) if entry.name == COROUTINES else entry for entry in run.about]
    claim = judged(replace(run, about=(*about, shared)))
    assert claim.verdict == "confirmed"
    assert claim.checks[0].figures == pytest.approx((100, 100))
    claim = judged(replace(run, about=(*about, replace(shared, code=None, why_no_code="no source files"))))
    assert (claim.verdict, claim.lacking) == ("not_testable", NotCounted("servers/_shared/epoll", "no source files"))


# --- what is compared --------------------------------------------------------------------------------------------


def test_the_effect_is_that_of_the_data_whatever_the_machine_does_between_blocks() -> None:
    in_one_cell = f'{FASTER}cells = {{ connections = 10, both.nodelay = "on" }}\n'
    (check,) = judged(made(in_one_cell, "throughput", by_name(coroutines=300, lock=100))).checks
    assert check.effect == pytest.approx(3.0, rel=1e-6)
    assert check.interval is not None
    assert 2.8 < check.interval.low < 3.0 < check.interval.high < 3.2
    assert (check.pairs, check.blocks) == (8, 8)
    assert check.figures == pytest.approx((324, 108), rel=0.01)
    assert check.paired_by == ("connections", "both.nodelay")


def test_cpu_used_is_cpu_time_by_the_time_that_passed() -> None:
    """Half the messages at twice the CPU for each is as much of a machine."""
    run = made(FASTER.replace("throughput", "cpu-used"), "cpu-used", by_name(coroutines=0.6, lock=0.3), blocks=6)
    (check,) = judged(run).checks
    assert check.effect == pytest.approx(2, rel=0.02)
    assert check.figures == pytest.approx((0.6, 0.3), rel=0.2)


def test_a_switch_is_charged_with_a_round_trip_of_the_canary_on_one_core() -> None:
    """100,000 round trips a second: 10 us a switch, of what CPU time the server used."""
    few = '[claim.test]\nkind = "bound"\nmetric = "switching"\ncells = { connections = 10 }\nbelow = 0.1\n'
    run = made(few, "switching", by_name(coroutines=0.05, lock=0.05, snapshot=0.05))
    (check,) = judged(run).checks
    assert check.outcome == "holds"
    assert check.figures == pytest.approx((0.05,), rel=0.05)
    trial = next(trial for trial in run.trials if trial.server is not None)
    assert trial.server is not None
    assert trial.load is not None
    switches = trial.server.voluntary_switches + trial.server.involuntary_switches
    assert METRICS["switching"].value(trial, trial.load) == pytest.approx(switches * 10e-6 / trial.server.cpu_s)
    assert trial.canary is not None
    assert trial.canary.before is not None
    older = replace(trial.canary.before, one_core_round_trips_per_second=0.0)
    for readings in (None, replace(trial.canary, before=older, after=older)):
        unread = tuple(replace(trial, canary=readings) for trial in run.trials)
        assert judged(replace(run, trials=unread)).checks[0].why_open == "no_figures"


@pytest.mark.parametrize("metric", [name for name in CLAIMED if METRICS[name].of_code is None])
def test_every_metric_is_read_from_where_it_is_stored(metric: str) -> None:
    threshold = '"1ns"' if METRICS[metric].is_time else "0.01"
    bound = f'[claim.test]\nkind = "bound"\nmetric = "{metric}"\nabove = {threshold}\n'
    truth = 0.25 if METRICS[metric].scale == "share" else 5e6
    (check,) = judged(made(bound, metric, lambda *_: truth, noise=lambda *_: 0.0)).checks
    drift = sum(0.4 * math.sin(block) for block in range(1, 9)) / 8
    expected = truth if METRICS[metric].scale == "share" else truth * math.exp(drift)
    assert check.effect == pytest.approx(expected, rel=0.01)


def test_in_every_cell_means_each_by_itself() -> None:
    claim = judged(made(EVERYWHERE, "throughput", but_at_1000(300, 100, 100)))
    assert len(claim.checks) == 6
    assert [check.outcome for check in claim.checks] == ["holds"] * 4 + ["fails"] * 2
    assert claim.checks[0].step.a.at == {"contestant": (COROUTINES,), "connections": (10,), "both.nodelay": ("on",)}
    assert claim.checks[0].step.b is not None
    assert claim.checks[0].step.b.at == {**claim.checks[0].step.a.at, "contestant": (LOCK,)}
    (together,) = judged(made(FASTER, "throughput", but_at_1000(300, 100, 100))).checks
    assert together.effect == pytest.approx(9 ** (1 / 3), rel=0.02)


def test_a_trend_may_pause_but_not_turn() -> None:
    assert judged(made(TREND, "switches", by_connections(1, 2, 2))).verdict == "confirmed"
    turned = judged(made(TREND, "switches", by_connections(1, 2, 1.5)))
    assert turned.verdict == "refuted"
    assert turned.decisive is not None
    assert (turned.decisive.needed, turned.decisive.outcome) == (False, "fails")


def test_all_tests_of_a_claim_must_hold_and_one_that_fails_refutes() -> None:
    both = f"{FASTER.replace('[claim.test]', '[[claim.test]]')}{FLAT.replace('[claim.test]', '[[claim.test]]')}"
    both = both.replace("p50", "throughput")

    def truth(at_1000: float) -> ClaimTruth:
        return lambda name, levels: (
            (at_1000 if levels["connections"] == 1000 else 1) * (300 if name == COROUTINES else 100)
        )

    assert judged(made(both, "throughput", truth(1.2))).verdict == "confirmed"
    assert judged(made(both, "throughput", truth(2))).verdict == "refuted"
    assert judged(made(both, "throughput", truth(1.5))).verdict == "undecided"


def test_a_refutation_is_corrected_for_the_number_of_comparisons_and_a_confirmation_needs_no_correction() -> None:
    """In noise that leaves each of six comparisons p = 2.7%."""

    def noise(block: int, number: int) -> float:
        return 0.5 * (-1) ** block if number % 3 == 0 else 0.0

    run = made(EVERYWHERE, "throughput", but_at_1000(400, 100, 400), blocks=6, noise=noise)
    assert judged(run).verdict == "confirmed"
    claim = judged(made(EVERYWHERE, "throughput", but_at_1000(400, 100, 100), blocks=6, noise=noise))
    assert claim.verdict == "undecided"
    assert {check.why_open for check in claim.open_checks} == {"unproven"}
    assert all(check.blocks_to_decide is not None and check.blocks_to_decide > 6 for check in claim.open_checks)
    assert all(check.p_corrected == pytest.approx(6 * check.p) for check in claim.checks)
    assert [check.p for check in claim.checks] == pytest.approx([0.027] * 6, abs=0.001)


def test_a_figure_of_zero_has_no_ratio_and_decides_nothing() -> None:
    claim = judged(made(TREND, "switches", by_connections(0, 1, 2)))
    assert claim.verdict == "undecided"
    assert claim.open_checks[0].why_open == "zero"
    assert claim.open_checks[0].figures == ()


# --- not testable ------------------------------------------------------------------------------------------------


FASTER_IS_TRUE = by_name(coroutines=300, lock=100)


def with_status(run: Run, names: tuple[str, ...], status: str, reason: str) -> Run:
    trials = [
        replace(trial, status=status, reason=reason, load=None, server=None) if trial.contestant in names else trial
        for trial in run.trials
    ]
    return replace(run, trials=tuple(trials))


def test_a_missing_contestant_is_not_testable_with_its_reason() -> None:
    run = with_status(made(FASTER, "throughput", FASTER_IS_TRUE), (LOCK,), "skipped", "Folly not found: see its README")
    claim = judged(run)
    assert claim.verdict == "not_testable"
    assert claim.lacking == Skipped(LOCK, "Folly not found: see its README")
    assert claim.counts is None


def test_a_cell_that_one_side_cannot_have_is_left_out_of_both() -> None:
    run = made(FASTER, "throughput", but_at_1000(300, 100, 1))
    trials = [
        replace(trial, status="skipped", reason="too many", load=None)
        if trial.contestant == LOCK and trial.levels["connections"] == 1000
        else trial
        for trial in run.trials
    ]
    claim = judged(replace(run, trials=tuple(trials)))
    assert (claim.verdict, claim.checks[0].pairs) == ("confirmed", 32)
    assert claim.checks[0].effect == pytest.approx(3, rel=0.02)


BEHIND = (
    Audit(name="achieved_rate", passed=False, detail="asked 1000000.0/s: the generator fell behind"),
    Audit(name="verification", passed=False, detail="lost 851"),
)
"""What the generator says where it was asked for too much: what it gave up on is lost as well."""


def behind(run: Run, names: Collection[str], connections: Collection[int] = (1000,)) -> Run:
    """The run as an open loop: at so many connections the generator fell behind beside these contestants."""
    scenarios = tuple(
        replace(scenario, arrivals="constant", rate_per_connection=1000.0) for scenario in run.experiment.scenarios
    )
    trials = [
        replace(trial, load=trial.load and replace(trial.load, plan=replace(trial.load.plan, rate_hz=1e5)))
        for trial in run.trials
    ]
    trials = [
        replace(trial, status="struck_out", reason="achieved_rate", audits=BEHIND)
        if trial.contestant in names and trial.levels["connections"] in connections
        else trial
        for trial in trials
    ]
    experiment = replace(run.experiment, scenarios=scenarios)
    return outcomes.judge_run(replace(run, experiment=experiment, trials=tuple(trials)))


def test_what_the_generator_could_not_offer_refutes_nothing_and_is_reported() -> None:
    run = made(EVERYWHERE, "throughput", but_at_1000(300, 100, 100))
    assert judged(run).verdict == "refuted"
    claim = judged(behind(run, (LOCK,)))
    assert (claim.verdict, len(claim.checks)) == ("confirmed", 4)
    assert words.name_left_out(claim).startswith(
        "left out: the generator could not offer the rate at 1000 connections, "
    )
    assert words.name_left_out(judged(run)) == ""
    assert judged(behind(made(EVERYWHERE, "throughput", but_at_1000(100, 100, 300)), (LOCK,))).verdict == "refuted"


def test_a_claim_of_which_the_generator_could_offer_nothing_is_not_testable() -> None:
    run = behind(made(EVERYWHERE, "throughput", FASTER_IS_TRUE), (LOCK,), (10, 100, 1000))
    claim = judged(run)
    assert claim.verdict == "not_testable"
    assert words.explain_no_verdict(claim).startswith("the generator could not offer the rate at ")


def test_an_overload_is_a_rate_not_achieved_and_one_of_the_generator_is_not_the_servers() -> None:
    claim_text = BOUND_OF_SHARES.replace("connected", "achieved").replace("0.5", "0.99")
    run = made(claim_text, "achieved", by_name(lock=0.4, coroutines=1, snapshot=1))
    lost = Audit(name="verification", passed=False, detail="lost 100 of 1000")
    overloaded = [replace(trial, audits=(lost,)) if trial.contestant == LOCK else trial for trial in run.trials]
    assert judged(outcomes.judge_run(replace(run, trials=tuple(overloaded)))).verdict == "confirmed"
    assert judged(behind(run, (LOCK,))).verdict == "confirmed", "beside the others it offered that rate"
    assert judged(behind(run, (COROUTINES, LOCK, SNAPSHOT))).verdict == "not_testable"


def test_trials_that_failed_leave_a_claim_undecided() -> None:
    claim = judged(with_status(made(FASTER, "throughput", FASTER_IS_TRUE), (LOCK,), "failed", "it ended"))
    assert claim.verdict == "undecided"
    assert claim.open_checks[0].why_open == "no_figures"


def test_a_server_that_was_left_out_of_the_run_is_not_testable() -> None:
    run = made(FASTER, "throughput", FASTER_IS_TRUE)
    claim = judged(replace(run, trials=tuple(trial for trial in run.trials if trial.contestant != LOCK)))
    assert claim.verdict == "not_testable"
    assert isinstance(claim.lacking, NotPlanned)
    assert claim.lacking.contestant == LOCK


def limited(run: Run, names: Collection[str] = NAMES, connections: Collection[int] = (10, 100, 1000)) -> Run:
    """The run with the generator at its limit beside these contestants at so many connections."""
    busy = Audit(name="generator", passed=False, detail="the busiest thread used 99% of a core")

    def change(trial: Trial) -> Trial:
        if trial.contestant not in names or trial.levels["connections"] not in connections or trial.load is None:
            return trial
        load = trial.load
        thread = GeneratorThread(cpu_user_s=0.99 * load.plan.duration_s, cpu_system_s=0.0, spun_s=0.0)
        load = replace(load, generator=replace(load.generator, threads=(thread,)))
        return replace(trial, status="struck_out", reason="generator", audits=(busy,), load=load)

    return outcomes.judge_run(replace(run, trials=tuple(change(trial) for trial in run.trials)))


AT_LIMIT = {
    "throughput": "at_least",
    "kept": "at_least",
    "unanswered": "at_most",
    "burst-goodput": "at_least",
    "recovery": "at_most",
    "moved": "at_least",
    "mean": "at_most",
    "p50": "at_most",
    "p90": "at_most",
    "p99": "at_most",
    "jitter": "unknown",
    "connection-spread": "unknown",
    "cpu": "exact",
    "cpu-used": "at_least",
    "throttled": "exact",
    "switches": "unknown",
    "switching": "unknown",
    "lock-wait": "unknown",
    "memory": "exact",
    "lost": "unknown",
    "connected": "exact",
    "achieved": "exact",
    "finished": "exact",
    "written": "exact",
}
"""What each figure says of a server that the generator could not follow."""


def test_every_metric_says_what_it_is_where_the_generator_is_at_its_limit() -> None:
    assert {name: METRICS[name].at_limit for name in CLAIMED if METRICS[name].of_code is None} == AT_LIMIT


@pytest.mark.parametrize(
    ("metric", "beside", "seen", "claimed", "verdict"),
    [
        # the coroutines answer at least three times as much
        ("throughput", (COROUTINES,), 3, "above = 2", "confirmed"),
        ("throughput", (COROUTINES,), 3, "below = 2.5", "refuted"),
        ("throughput", (COROUTINES,), 3, "above = 4", "not_testable"),
        ("throughput", (COROUTINES,), 3, "below = 4", "not_testable"),
        # three times as much at most
        ("throughput", (LOCK,), 3, "above = 4", "refuted"),
        ("throughput", (LOCK,), 3, "below = 4", "confirmed"),
        ("throughput", (LOCK,), 3, "above = 2", "not_testable"),
        ("throughput", (LOCK,), 3, "below = 2", "not_testable"),
        ("throughput", NAMES, 3, "above = 2", "not_testable"),
        ("throughput", (SNAPSHOT,), 3, "above = 2", "confirmed"),  # its cells are of neither side
        ("cpu-used", (COROUTINES,), 3, "above = 2", "confirmed"),
        # of times the other way round
        ("mean", (COROUTINES,), 0.5, "below = 0.8", "confirmed"),
        ("mean", (COROUTINES,), 0.5, "above = 0.8", "refuted"),
        ("mean", (COROUTINES,), 0.5, "below = 0.4", "not_testable"),
        ("p99", (LOCK,), 0.5, "above = 0.4", "confirmed"),
        ("p99", (LOCK,), 0.5, "below = 0.4", "refuted"),
        ("p99", (LOCK,), 0.5, "below = 0.8", "not_testable"),
        # what a message costs and what a server holds is its own
        ("cpu", NAMES, 3, "above = 2", "confirmed"),
        ("memory", NAMES, 3, "above = 4", "refuted"),
        ("jitter", (COROUTINES,), 3, "above = 2", "not_testable"),
        ("switches", (LOCK,), 3, "above = 2", "not_testable"),
    ],
)
def test_a_bound_decides_what_it_can(
    metric: str, beside: tuple[str, ...], seen: float, claimed: str, verdict: str
) -> None:
    test = FASTER.replace("throughput", metric).replace("above = 2", claimed)
    run = made(test, metric, by_name(coroutines=seen * 1e6, lock=1e6, snapshot=1e6))
    claim = judged(limited(run, beside))
    assert claim.verdict == verdict
    if verdict == "not_testable":
        assert claim.lacking == GeneratorAtLimit(LOCK if COROUTINES not in beside else COROUTINES)


def test_one_bound_among_the_levels_makes_the_comparison_one() -> None:
    run = made(FASTER, "throughput", FASTER_IS_TRUE)
    claim = judged(limited(run, (COROUTINES,), (10,)))
    assert (claim.verdict, claim.checks[0].limit, claim.checks[0].pairs) == ("confirmed", "at_least", 48)
    assert words.format_effect(claim.checks[0]).startswith("at least ×3.0")  # noqa: RUF001
    claim = judged(limited(run, (LOCK,), (10,)))
    assert (claim.verdict, claim.checks[0].limit, claim.checks[0].why_open) == ("not_testable", "at_most", "bound")
    claim = judged(limited(run, NAMES, (10,)))
    assert (claim.verdict, claim.checks[0].limit, claim.checks[0].pairs) == ("confirmed", None, 32), (
        "they say nothing there"
    )


def test_for_connects_the_generator_is_no_limit() -> None:
    connected = made(BOUND_OF_SHARES, "connected", by_name(lock=0.15))
    assert judged(limited(connected)).verdict == "confirmed"


def test_a_bound_on_the_right_side_and_too_near_is_undecided() -> None:
    run = made(FASTER, "throughput", by_name(coroutines=200.2, lock=100))
    claim = judged(limited(run, (COROUTINES,)))
    assert (claim.verdict, claim.checks[0].why_open) == ("undecided", "near")


def test_what_overestimates_shows_only_that_something_is_small() -> None:
    few = '[claim.test]\nkind = "bound"\nmetric = "switching"\nbelow = 0.1\n'
    assert judged(made(few, "switching", lambda *_: 0.05)).verdict == "confirmed"
    claim = judged(made(few, "switching", lambda *_: 0.4))
    assert (claim.verdict, claim.checks[0].why_open, claim.checks[0].limit) == ("undecided", "bound", "at_most")
    assert "at most 40" in words.explain_no_verdict(claim)
    many = few.replace("below = 0.1", "above = 0.1")
    assert judged(made(many, "switching", lambda *_: 0.4)).verdict == "undecided"
    assert judged(made(many, "switching", lambda *_: 0.05)).verdict == "refuted"


# --- needs of one verdict ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("needs", "coroutines", "verdict", "to"),
    [
        ("needs-to-confirm", 300, "not_testable", "confirm"),
        ("needs-to-confirm", 150, "refuted", None),
        ("needs-to-refute", 300, "confirmed", None),
        ("needs-to-refute", 150, "not_testable", "refute"),
        ("needs-to-refute", 200, "undecided", None),
    ],
)
def test_a_need_of_one_verdict_leaves_the_other(
    needs: str, coroutines: int, verdict: str, to: SettledVerdict | None
) -> None:
    small = {"cores_allowed": 2, "pinning.server": "0"}
    for of_test in ("", "[claim.test]\n"):
        key = f'{needs} = ["server-cores >= 4"]'
        test = FASTER.replace("[claim.test]\n", f"[claim.test]\n{key}\n") if of_test else FASTER
        run = made(test, "throughput", by_name(coroutines=coroutines, lock=100), keys="" if of_test else key)
        claim = judged(replace(run, environment=dict(small)))
        assert claim.verdict == verdict
        assert claim.lacking == (TooFewCores(4, 1, of_server=True, to=to) if to else None)
        large = judged(replace(run, environment={"cores_allowed": 8, "pinning.server": "0,1,2,3"}))
        assert large.verdict == {300: "confirmed", 150: "refuted", 200: "undecided"}[coroutines]


def test_a_need_of_one_test_leaves_the_others_to_refute() -> None:
    large = FASTER.replace("above = 2", 'above = 2\nneeds = ["cores >= 4"]')
    both = f"{large}{FASTER.replace(LOCK, SNAPSHOT)}".replace("[claim.test]", "[[claim.test]]")
    for lock, snapshot, verdict in ((100, 100, "not_testable"), (200, 100, "not_testable"), (100, 200, "refuted")):
        claim = judged(made(both, "throughput", by_name(coroutines=300, lock=lock, snapshot=snapshot)))
        assert (claim.verdict, len(claim.checks)) == (verdict, 1), "made on two cores"
    with_cores = made(both, "throughput", by_name(coroutines=300, lock=100, snapshot=100))
    assert judged(replace(with_cores, environment={"cores_allowed": 4})).verdict == "confirmed"


# --- tests that only refute --------------------------------------------------------------------------------------


def with_one_that_only_refutes(keys: str = "") -> str:
    """Above twice the lock must hold; above twice the snapshot must only not fail."""
    second = FASTER.replace(LOCK, SNAPSHOT).replace("above = 2", f"above = 2\nonly-refutes = true\n{keys}")
    return f"{FASTER}{second}".replace("[claim.test]", "[[claim.test]]")


@pytest.mark.parametrize(
    ("lock", "snapshot", "verdict"),
    [
        (100, 100, "confirmed"),
        (100, 150, "confirmed"),  # on its threshold
        (100, 200, "refuted"),
        (150, 100, "undecided"),
        (200, 100, "refuted"),
    ],
)
def test_a_test_that_only_refutes_never_confirms(lock: int, snapshot: int, verdict: str) -> None:
    run = made(with_one_that_only_refutes(), "throughput", by_name(coroutines=300, lock=lock, snapshot=snapshot))
    assert judged(run).verdict == verdict


def test_a_test_that_only_refutes_may_be_missing() -> None:
    run = made(with_one_that_only_refutes(), "throughput", by_name(coroutines=300, lock=100, snapshot=200))
    assert judged(with_status(run, (SNAPSHOT,), "skipped", "not here")).verdict == "confirmed"
    for key in ("needs", "needs-to-confirm", "needs-to-refute"):
        test = with_one_that_only_refutes(f'{key} = ["cores >= 4"]')
        run = made(test, "throughput", by_name(coroutines=300, lock=100, snapshot=100))
        assert judged(run).verdict == "confirmed", "made on two cores"


def test_a_test_that_only_refutes_decides_where_the_others_cannot() -> None:
    for snapshot, verdict in ((100, "not_testable"), (150, "not_testable"), (200, "refuted")):
        run = made(with_one_that_only_refutes(), "throughput", by_name(coroutines=300, lock=100, snapshot=snapshot))
        claim = judged(with_status(run, (LOCK,), "skipped", "not here"))
        assert (claim.verdict, claim.lacking) == (verdict, Skipped(LOCK, "not here") if snapshot < 200 else None)


def test_what_was_counted_beside_a_test_that_only_refutes_is_reported() -> None:
    truth = by_name(coroutines=300, lock=100, snapshot=200)
    claim = judged(made(with_one_that_only_refutes(), "throughput", truth, keys='why = "switches"'))
    assert claim.counts is not None
    assert [side.cells.at["contestant"] for side in claim.counts.sides] == [(COROUTINES,), (LOCK,), (SNAPSHOT,)]


def test_what_the_generator_could_not_offer_is_not_confirmed_by_a_test_that_only_refutes() -> None:
    """Its comparison is all that is left, and it holds."""
    only = FASTER.replace("above = 2", "above = 2\nonly-refutes = true\ncells.connections = 10")
    rest = f"{FASTER}cells.connections = [100, 1000]\n"
    both = f"{only}{rest}".replace("[claim.test]", "[[claim.test]]")
    claim = judged(behind(made(both, "throughput", FASTER_IS_TRUE), (LOCK,), (100, 1000)))
    assert (claim.verdict, claim.lacking) == ("not_testable", claim.left_out)


@pytest.mark.parametrize(("server", "cores"), [((0,), 1), ((0, 1), 2), ((), 2)], ids=["apart", "shared", "not pinned"])
def test_the_servers_cores_are_those_of_the_trials(server: tuple[int, ...], cores: int) -> None:
    """A scenario may give its servers other cores than the run does."""
    run = made(FASTER, "throughput", FASTER_IS_TRUE, keys='needs = ["server-cores >= 2"]')
    pinning = Pinning(server=server, generator=(1,), note="")
    trials = tuple(replace(trial, pinning=pinning) for trial in run.trials)
    claim = judged(replace(run, trials=trials, environment={"cores_allowed": 2, "pinning.server": "0"}))
    assert claim.verdict == ("confirmed" if cores == 2 else "not_testable")


# --- published sizes, and differences ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ratio", "verdict"), [(1.2, "confirmed"), (1.05, "confirmed"), (1.0, "refuted"), (0.9, "refuted")]
)
def test_equality_refutes_a_gain_of_a_published_size(ratio: float, verdict: str) -> None:
    test = FASTER.replace("above = 2", "above = 1\nleast-published = 1.13")
    claim = judged(made(test, "throughput", by_name(coroutines=100 * ratio, lock=100)))
    assert (claim.verdict, claim.checks[0].is_short_of_published) == (verdict, ratio == 1.0)
    assert ("short of the published ×1.13" in words.format_effect(claim.checks[0])) == (ratio == 1.0)  # noqa: RUF001
    without = FASTER.replace("above = 2", "above = 1")
    assert judged(made(without, "throughput", by_name(coroutines=100, lock=100))).verdict == "undecided"
    below = test.replace("above = 1\nleast-published = 1.13", "below = 1\nleast-published = 0.8")
    assert judged(made(below, "throughput", by_name(coroutines=100, lock=100))).verdict == "refuted"


def test_a_server_that_gains_most_milliseconds_need_not_have_grown_most() -> None:
    """From 41 to 1195 ms is 29-fold, from 5 to 213 is 42-fold."""
    most = GROWS_MOST.replace("p99", "mean").replace("over = {", "minus = {")

    def truth(name: str, levels: Levels) -> float:
        first, last = (41e6, 1195e6) if name == COROUTINES else (5e6, 213e6)
        return last if levels["connections"] == 1000 else first

    claim = judged(made(most, "mean", truth, noise=lambda *_: 0.0))
    assert claim.verdict == "confirmed"
    assert words.describe_comparison(claim.checks[0], {}).endswith(", each less that at 10 connections")
    assert words.format_claimed_effect(claim.checks[0].step) == "below 0 ns"
    assert words.format_effect(claim.checks[0]).startswith("\N{MINUS SIGN}")
    assert judged(made(GROWS_MOST.replace("p99", "mean"), "mean", truth)).verdict == "refuted"
    falling = by_connections(5e9, 5e9, 4e9)  # an answer sooner at the end is a negative gain, and has a figure

    def gains_less(name: str, levels: Levels) -> float:
        return truth(name, levels) if name == COROUTINES else falling(name, levels)

    assert judged(made(most, "mean", gains_less)).verdict == "confirmed"


@pytest.mark.parametrize(
    ("needs", "environment", "lacking"),
    [
        ('["cores >= 4"]', {"cores_allowed": 2}, TooFewCores(4, 2)),
        ('["cores >= 4"]', {}, TooFewCores(4, None)),
        ('["server-cores >= 2"]', {"cores_allowed": 4, "pinning.server": "0,1"}, None),
        ('["server-cores >= 2"]', {"cores_allowed": 2, "pinning.server": "0"}, TooFewCores(2, 1, of_server=True)),
        ('["server-cores >= 2"]', {"cores_allowed": 2, "pinning.server": "none"}, None),
        ('["server-cores >= 2"]', {"cores_allowed": 2}, TooFewCores(2, None, of_server=True)),
        ('["second host"]', {"cores_allowed": 64}, OnlyOne("second host")),
        ('["cores >= 4", "folly"]', {"cores_allowed": 4}, None),
        ('["second host"]', {"hosts": 2}, None),
        ('["second platform"]', {"hosts": 2}, OnlyOne("second platform")),
        ('["one host"]', {"hosts": 2}, SeveralHosts()),
        ('["one host"]', {}, None),
    ],
)
def test_a_need_that_the_machine_does_not_meet(
    needs: str, environment: dict[str, int], lacking: Lacking | None
) -> None:
    run = made(FASTER, "throughput", FASTER_IS_TRUE, keys=f"needs = {needs}")
    claim = judged(replace(run, environment=dict(environment)))
    assert (claim.verdict, claim.lacking) == ("not_testable" if lacking else "confirmed", lacking)


def test_what_fails_refutes_even_where_another_test_cannot_be_had() -> None:
    second = FASTER.replace(LOCK, SNAPSHOT)
    both = f"{FASTER}{second}".replace("[claim.test]", "[[claim.test]]")
    for lock, verdict in ((100, "not_testable"), (150, "not_testable"), (200, "refuted")):
        run = made(both, "throughput", by_name(coroutines=300, lock=lock, snapshot=100))
        assert judged(with_status(run, (SNAPSHOT,), "skipped", "not here")).verdict == verdict


def test_code_that_was_not_counted_is_not_testable() -> None:
    run = made(FLAT_CODE, "lines", by_name(coroutines=100, lock=110))
    about = [
        replace(entry, code=None, why_no_code="no source files") if entry.name == LOCK else entry for entry in run.about
    ]
    claim = judged(replace(run, about=tuple(about)))
    assert (claim.verdict, claim.lacking) == ("not_testable", NotCounted(LOCK, "no source files"))


# --- what goes with it -------------------------------------------------------------------------------------------


def test_connects_that_failed_are_counted_in_trials_that_were_invalid_for_them() -> None:
    run = made(BOUND_OF_SHARES, "connected", by_name(lock=0.15))
    invalid = [replace(trial, status="struck_out", reason="connections: 15 of 100") for trial in run.trials]
    assert judged(replace(run, trials=tuple(invalid))).verdict == "confirmed"
    latency = made(BOUND, "mean", by_name(lock=20e9))
    invalid = [replace(trial, status="struck_out", reason="little") for trial in latency.trials]
    assert judged(replace(latency, trials=tuple(invalid))).verdict == "undecided"


def counted(claim: JudgedClaim) -> tuple[str, dict[tuple[type_level, ...], float | None]]:
    """What was counted beside a claim whose sides differ in one coordinate, by its value on each."""
    assert claim.counts is not None
    differ = [
        name
        for name, values in claim.counts.sides[0].cells.at.items()
        if values != claim.counts.sides[1].cells.at[name]
    ]
    return claim.counts.metric, {side.cells.at[differ[0]]: side.figure for side in claim.counts.sides}


def test_why_is_what_was_counted_at_the_ends_of_a_trend() -> None:
    metric, ends = counted(judged(made(TREND, "switches", by_connections(1, 2, 4), keys='why = "switches"')))
    assert (metric, list(ends)) == ("switches", [(1000,), (10,)]), "a trend is told at its ends"
    first, last = ends[10,], ends[1000,]
    assert first is not None
    assert last is not None
    assert last / first == pytest.approx(4, rel=0.05)


def test_loss_is_reported_beside_a_claim_under_the_name_that_claims_have_for_it() -> None:
    claim = judged(made(FASTER, "throughput", FASTER_IS_TRUE, keys='why = "loss"'))
    assert counted(claim)[0] == "lost"


def test_a_latency_beside_which_messages_were_lost_says_so() -> None:
    claim = judged(made(ORDER, "p99", by_name(coroutines=1e6, lock=2e6, snapshot=2e6), change=lossy_coroutines))
    assert claim.verdict == "confirmed"
    assert claim.losses == {COROUTINES: 0.12}
    assert (claim.checks[0].losses, claim.checks[0].step.needed) == ((None, 0.12), True)
    faster = judged(made(FASTER, "throughput", FASTER_IS_TRUE, change=lossy_coroutines))
    assert (faster.losses, faster.checks[0].losses) == ({}, (None, None)), "only a latency leaves them out"


def test_without_claims_there_are_no_verdicts() -> None:
    run = made(FASTER, "throughput", FASTER_IS_TRUE)
    assert judge_claims(replace(run, experiment=replace(run.experiment, claims=()))) == ()


# --- properties --------------------------------------------------------------------------------------------------

OPPOSITE = {"confirmed": "refuted", "refuted": "confirmed", "undecided": "undecided"}
factors = st.lists(st.floats(0.2, 20), min_size=6, max_size=6)


def noisy(figures: list[float]) -> ClaimTruth:
    places = [(name, connections) for name in (COROUTINES, LOCK) for connections in (10, 100, 1000)]
    return lambda name, levels: (
        100 * dict(zip(places, figures, strict=True)).get((name, int(levels["connections"])), 1.0)
    )


@settings(max_examples=40, deadline=None)
@given(factors)
def test_the_opposite_claim_has_the_opposite_verdict(figures: list[float]) -> None:
    verdict = judged(made(FASTER, "throughput", noisy(figures), blocks=6)).verdict
    opposite = judged(made(FASTER.replace("above", "below"), "throughput", noisy(figures), blocks=6)).verdict
    assert opposite == OPPOSITE[verdict]


@settings(max_examples=40, deadline=None)
@given(factors)
def test_turning_the_ratio_round_changes_nothing(figures: list[float]) -> None:
    turned = FASTER.replace(COROUTINES, "x").replace(LOCK, COROUTINES).replace('"x"', f'"{LOCK}"')
    turned = turned.replace("above = 2", "below = 0.5")
    direct, mirrored = (judged(made(tests, "throughput", noisy(figures), blocks=6)) for tests in (FASTER, turned))
    assert direct.verdict == mirrored.verdict
    assert direct.checks[0].effect == pytest.approx(1 / mirrored.checks[0].effect)


@settings(max_examples=20, deadline=None)
@given(factors, st.randoms(use_true_random=False))
def test_a_verdict_does_not_depend_on_the_order_of_trials(figures: list[float], random: object) -> None:
    run = made(ORDER, "p99", lambda name, levels: 1e4 * noisy(figures)(name, levels), blocks=6)
    trials = list(run.trials)
    random.shuffle(trials)  # type: ignore[attr-defined]
    assert judge_claims(replace(run, trials=tuple(trials))) == judge_claims(run)


def test_on_the_threshold_itself_verdicts_are_rare() -> None:
    """What is claimed is neither true nor false, and the noise is heavy-tailed: at most 5% may come to a verdict."""
    random = np.random.default_rng(5)
    verdicts = [
        judged(
            made(FASTER, "throughput", by_name(coroutines=200, lock=100), noise=lambda *_: 0.05 * random.standard_t(3))
        ).verdict
        for _ in range(200)
    ]
    assert sum(verdict != "undecided" for verdict in verdicts) <= 200 * stats.SIGNIFICANCE + 8
    assert "not_testable" not in verdicts


def test_a_claim_and_its_verdict_survive_storing() -> None:
    run = made(ORDER, "p99", by_name(coroutines=1e6, lock=2e6), keys='needs = ["folly"]\npublished = { "ms" = 3.9 }')
    again = msgspec.json.decode(msgspec.json.encode(run), type=Run)
    assert again.experiment.claims == run.experiment.claims
    assert judge_claims(again) == judge_claims(run)


def test_what_switches_took_is_unknown_where_threads_ended_unread() -> None:
    run = made('[claim.test]\nkind = "bound"\nmetric = "switching"\nbelow = 0.1', "switching", lambda *_: 0.05)
    (trial, *_) = run.trials
    assert trial.load is not None
    assert trial.server is not None
    unread = replace(trial, server=replace(trial.server, threads_unread=1))
    assert METRICS["switching"].value(trial, trial.load) is not None
    assert METRICS["switching"].value(unread, trial.load) is None
