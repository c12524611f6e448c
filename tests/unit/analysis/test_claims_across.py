"""A claim that something depends on the platform is judged over runs of several platforms."""

from __future__ import annotations

import io

import pytest
from msgspec.structs import replace
from rich.console import Console

from netdyno.analysis.claims.across import judge_across_runs
from netdyno.model.load_result import Audit
from netdyno.model.run import Run
from netdyno.model.verdicts import GeneratorAtLimit
from netdyno.verbs.claims import render
from tests.support.builders.made_claims import RATIO, made
from tests.support.builders.made_run import COROUTINES

LEADS = f"[claim.test]{RATIO}above = 1\n"


def on(platform: str, ratio: float, *, needs: str = 'needs = ["second platform"]', name: str = "") -> Run:
    run = made(LEADS, "throughput", lambda contestant, _: 100 * (ratio if contestant == COROUTINES else 1), keys=needs)
    environment = {**run.environment, "architecture": "x86_64", "cpu_model": platform, "system": "Debian 12"}
    return replace(run, run_id=name or platform, environment=environment)


@pytest.mark.parametrize(
    ("ratios", "together"),
    [((2, 0.5), "confirmed"), ((2, 3), "refuted"), ((0.5, 0.4), "refuted"), ((2, 1), "undecided")],
)
def test_opposite_signs_on_two_platforms_confirm_it(ratios: tuple[float, float], together: str) -> None:
    (claim,) = judge_across_runs([on("Intel", ratios[0]), on("M4", ratios[1])])
    assert (claim.together, claim.platforms) == (together, 2)
    assert [run_id for run_id, _ in claim.by_run] == ["Intel", "M4"]


def test_two_runs_of_one_platform_say_nothing_of_another() -> None:
    (claim,) = judge_across_runs([on("Intel", 2, name="first"), on("Intel", 0.5, name="second")])
    assert (claim.together, claim.platforms) == ("not_testable", 1)
    assert "add a run of another" in shown(on("Intel", 2), on("Intel", 0.5))


def test_a_platform_whose_runs_contradict_each_other_decides_nothing() -> None:
    first, second, elsewhere = on("Intel", 2, name="first"), on("Intel", 0.5, name="second"), on("M4", 0.5)
    (claim,) = judge_across_runs([first, second, elsewhere])
    assert (claim.together, claim.platforms) == ("undecided", 2)
    (claim,) = judge_across_runs([first, elsewhere])
    assert claim.together == "confirmed"


def test_a_run_that_tested_something_else_says_nothing_of_it() -> None:
    elsewhere = on("M4", 0.5)
    claims = tuple(
        replace(tested_claim, tests=(replace(tested_claim.tests[0], threshold=2.0),))
        for tested_claim in elsewhere.experiment.claims
    )
    changed = replace(elsewhere, experiment=replace(elsewhere.experiment, claims=claims))
    (claim,) = judge_across_runs([on("Intel", 2), changed])
    assert ([run_id for run_id, _ in claim.by_run], claim.together) == (["Intel"], "not_testable")


def test_a_run_is_judged_as_in_its_report() -> None:
    run, behind = on("Intel", 0.5, needs=""), (Audit(name="achieved_rate", passed=False, detail=""),)
    trials = [
        replace(trial, status="struck_out", audits=behind) if trial.contestant == COROUTINES else trial
        for trial in run.trials
    ]
    (claim,) = judge_across_runs([replace(run, trials=tuple(trials))])
    assert claim.by_run[0][1].lacking == GeneratorAtLimit(COROUTINES)


def test_any_other_claim_has_the_verdict_of_each_run_alone() -> None:
    (claim,) = judge_across_runs([on("Intel", 2, needs=""), on("M4", 0.5, needs="")])
    assert claim.together is None
    assert [judged.verdict for _, judged in claim.by_run] == ["confirmed", "refuted"]


def test_what_is_missing_in_one_run_leaves_it_untestable() -> None:
    needs = 'needs = ["second platform", "cores >= 4"]'
    (claim,) = judge_across_runs([on("Intel", 2, needs=needs), on("M4", 0.5, needs=needs)])
    assert claim.together == "not_testable"


def shown(*runs: Run) -> str:
    out = io.StringIO()
    Console(file=out, width=100).print(render(judge_across_runs(runs)))
    return " ".join(out.getvalue().split())


def test_it_is_reported_run_by_run_and_together() -> None:
    printed = shown(on("Intel", 2), on("M4", 0.5))
    assert "Intel: confirmed; throughput of" in printed
    assert "M4: refuted; throughput of" in printed
    assert "together, on 2 platforms: confirmed" in printed
