"""What a gate says of runs in which the truth is known."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping

import pytest
from msgspec.structs import replace

from netdyno.analysis.analysis import analyse
from netdyno.analysis.found.gate import GatedMetric, GateFindings, GateOutcome
from netdyno.analysis.gate.judge_gate import decide_gate, decide_outcome, select_metrics
from netdyno.kit.errors import UserError
from netdyno.kit.statistics.stats import Better, Interval
from netdyno.model import outcomes
from netdyno.model.experiment import Experiment, Gate, Scenario
from netdyno.model.load_result import Audit
from netdyno.model.run import Run
from netdyno.model.trial import Status, Trial
from netdyno.verbs import run as run_command
from netdyno.verbs.gate import AFTER, BEFORE, convert_to_gate, parse_margins
from tests.support.builders.made_claims import made_trial

CLOSED = Scenario(name="most", workload="http", contestants=(BEFORE, AFTER))
OPEN = Scenario(name="rate", workload="http", contestants=(BEFORE, AFTER), arrivals="poisson", rate=2000, metric="p99")
FIGURES = {"throughput": 1000.0, "cpu": 20_000.0}


def make_experiment(*scenarios: Scenario, **margins: float) -> Experiment:
    experiment = Experiment(name="web", question="Which?", scenarios=scenarios or (CLOSED,), aa_share=0.1)
    return convert_to_gate(experiment, margins or {"throughput": 0.05, "cpu": 0.05}, 600.0)


def test_a_margin_that_no_scenario_judges_is_refused() -> None:
    with pytest.raises(UserError, match="--margin mean: a gate of 'web' does not judge it"):
        make_experiment(CLOSED, OPEN, throughput=0.05, mean=0.1)
    with pytest.raises(UserError, match="--margin p50: "):
        make_experiment(CLOSED, throughput=0.05, p50=0.1)
    assert make_experiment(CLOSED, OPEN, throughput=0.05, p99=0.1).scenarios


def made(
    blocks: int,
    after: Mapping[str, float],
    spread: float = 0.02,
    experiment: Experiment | None = None,
) -> Run:
    """`after` multiplies what was measured before; a drift of the machine meets both."""
    draw, trials = random.Random(1), []
    experiment = experiment or make_experiment()
    for block in range(1, blocks + 1):
        drift = math.exp(draw.gauss(0, 0.5))
        for name in (BEFORE, AFTER):
            figures = {
                metric: value
                * drift
                * math.exp(draw.gauss(0, spread))
                * (after.get(metric, 1.0) if name == AFTER else 1)
                for metric, value in FIGURES.items()
            }
            trials.append(made_trial(experiment.scenarios[0], block, name, {}, figures))
    trials = [replace(trial, position=number) for number, trial in enumerate(trials)]
    return Run(
        run_id="made",
        experiment=experiment,
        started_at="2025-01-01T12:00:00Z",
        finished_at=None,
        environment={},
        trials=tuple(trials),
    )


def judge_gate(run: Run) -> GateFindings:
    gate = analyse(run).gate
    assert gate is not None
    return gate


def line(gate: GateFindings, metric: str) -> GatedMetric:
    (result,) = [result for result in gate.lines if result.metric == metric]
    return result


def test_equal_servers_pass_and_the_gate_does_not_go_on() -> None:
    gate = judge_gate(made(20, {}))
    assert [row.outcome for row in gate.lines] == ["within", "within"]
    assert (gate.decision, gate.may_go_on) == ("passes", False)


def test_before_the_first_look_nothing_is_decided() -> None:
    gate = judge_gate(made(5, {}))
    assert {row.interval for row in gate.lines} == {None}
    assert (gate.decision, gate.may_go_on) == ("open", True)


@pytest.mark.parametrize(("metric", "factor"), [("throughput", 0.8), ("cpu", 1.25)])
def test_one_metric_that_is_worse_fails_whatever_the_others_say(metric: str, factor: float) -> None:
    gate = judge_gate(made(20, {metric: factor}))
    row = line(gate, metric)
    assert row.outcome == "worse"
    assert row.ratio == pytest.approx(factor, rel=0.03)
    assert row.after / row.before == pytest.approx(row.ratio)
    assert row.interval is not None
    assert row.interval.low < factor < row.interval.high
    assert (gate.decision, gate.may_go_on) == ("fails", False)


@pytest.mark.parametrize(("metric", "factor"), [("throughput", 1.25), ("cpu", 0.8)])
def test_what_is_better_passes(metric: str, factor: float) -> None:
    gate = judge_gate(made(20, {metric: factor}))
    assert line(gate, metric).outcome == "better"
    assert gate.decision == "passes"


def test_an_undecided_server_goes_on_to_the_last_look() -> None:
    gate = judge_gate(made(13, {"cpu": 1.05}, spread=0.1))
    assert (gate.decision, gate.may_go_on) == ("open", True)
    gate = judge_gate(made(225, {"cpu": 1.05}, spread=0.1))
    assert line(gate, "cpu").outcome == "open"
    assert not gate.may_go_on


@pytest.mark.parametrize(
    ("low", "high", "better", "expected"),
    [
        (0.96, 1.1, "higher", "within"),
        (0.94, 1.1, "higher", "open"),
        (0.8, 0.949, "higher", "worse"),
        (0.8, 0.951, "higher", "open"),
        (1.01, 1.2, "higher", "better"),
        (0.9, 1.04, "lower", "within"),
        (0.9, 1.06, "lower", "open"),
        (1.051, 1.2, "lower", "worse"),
        (1.01, 1.04, "lower", "within"),
        (0.8, 0.99, "lower", "better"),
    ],
)
def test_an_outcome_is_where_the_interval_lies(low: float, high: float, better: Better, expected: GateOutcome) -> None:
    assert decide_outcome(Interval(math.log(low), math.log(high)), 0.05, better) == expected


def test_all_have_to_pass_and_one_is_enough_to_fail() -> None:
    assert decide_gate(["within", "better"]) == "passes"
    assert decide_gate(["within", "open"]) == "open"
    assert decide_gate(["within", "bound"]) == "open"
    assert decide_gate(["open", "worse"]) == "fails"
    assert decide_gate([]) == "open"


def with_faults(run: Run, name: str, blocks: range, *, audit: str, corrupt: int = 0) -> Run:
    """The run with a fault of one server in some blocks."""

    def fail(trial: Trial) -> Trial:
        if trial.contestant != name or trial.block not in blocks or trial.load is None:
            return trial
        load = replace(trial.load, messages=replace(trial.load.messages, corrupt=corrupt))
        return replace(trial, audits=(Audit(name=audit, passed=False, detail="as it was made"),), load=load)

    return replace(run, trials=tuple(map(fail, run.trials)))


def test_a_wrong_reply_fails_at_once_and_only_where_it_is_new() -> None:
    run = with_faults(made(6, {}), AFTER, range(2, 3), audit="verification", corrupt=1)
    assert {row.outcome for row in judge_gate(run).lines} == {"faulty"}
    assert judge_gate(run).decision == "fails"
    both = judge_gate(with_faults(run, BEFORE, range(4, 5), audit="verification", corrupt=1))
    assert {row.outcome for row in both.lines} == {"unsound"}
    assert (both.decision, both.may_go_on) == ("open", False)


def test_a_server_that_was_not_ready_once_fails_no_gate() -> None:
    assert judge_gate(with_faults(made(30, {}), AFTER, range(2, 3), audit="died")).decision == "passes"
    assert judge_gate(with_faults(made(30, {}), AFTER, range(1, 15), audit="died")).decision == "fails"


def end_early(run: Run, name: str) -> Run:
    """The run with a server that ended by itself in every trial, before any answer."""
    died = (Audit(name="died", passed=False, detail="exit code 3"),)
    dead = {"status": "failed", "reason": "the server ended", "load": None, "server": None, "audits": died}
    return replace(run, trials=tuple(replace(t, **dead) if t.contestant == name else t for t in run.trials))


def silence(run: Run, name: str) -> Run:
    """The run with a server that was never answered, and whose core was not seen."""

    def mute(trial: Trial) -> Trial:
        if trial.contestant != name or trial.load is None:
            return trial
        load = replace(trial.load, messages=replace(trial.load.messages, received=0))
        audits = tuple(Audit(name=audit, passed=False, detail="none") for audit in ("completed", "server_alive"))
        return replace(trial, load=load, server=None, audits=audits, status="struck_out")

    return replace(run, trials=tuple(map(mute, run.trials)))


def test_a_server_that_ends_in_five_of_five_blocks_fails_and_the_gate_ends() -> None:
    four, five = (judge_gate(end_early(made(blocks, {}), AFTER)) for blocks in (4, 5))
    assert (four.decision, four.may_go_on) == ("unmeasured", True)
    assert (five.decision, five.may_go_on) == ("fails", False)
    assert {row.outcome for row in five.lines} == {"faulty"}


def test_faults_are_counted_by_trials_and_by_blocks() -> None:
    both = make_experiment(CLOSED, OPEN, throughput=0.05, p99=0.25)
    run = made(5, {}, experiment=both)
    other = tuple(replace(trial, scenario="rate", position=99 + trial.position) for trial in run.trials)
    run = replace(run, trials=(*run.trials, *other))
    three = replace(run, trials=tuple(trial for trial in run.trials if trial.block <= 3))
    assert judge_gate(end_early(three, AFTER)).decision == "fails", "six of six trials"
    dead = end_early(run, AFTER).trials
    in_one = [trial if trial.scenario == "most" else whole for trial, whole in zip(dead, run.trials, strict=True)]
    gate = judge_gate(replace(run, trials=tuple(in_one)))
    assert {row.scenario: row.outcome for row in gate.lines if row.outcome == "faulty"} == {"most": "faulty"}


def test_a_server_that_answers_nothing_beside_the_other_fails_after_two_trials() -> None:
    once, twice = (judge_gate(silence(made(blocks, {}), AFTER)) for blocks in (1, 2))
    assert (once.decision, once.may_go_on) == ("unmeasured", True)
    assert (twice.decision, twice.may_go_on) == ("fails", False)
    mute = silence(made(2, {}), AFTER)
    noted = [replace(trial, audits=tuple(map(outcomes.excuse_fault, trial.audits))) for trial in mute.trials]
    kept = [was if was.contestant == BEFORE else now for was, now in zip(mute.trials, noted, strict=True)]
    judged = judge_gate(replace(mute, trials=tuple(kept)))
    assert judged.decision == "fails", "a fault that is a note is a fault for a gate, too"
    first, *rest = silence(made(2, {}), AFTER).trials
    disturbed = [trial for trial in made(1, {}).trials if trial.contestant == AFTER]
    noise = Audit(name="foreign_load", passed=False, detail="others")
    retried = [replace(trial, audits=(*trial.audits, noise), status="made_again") for trial in disturbed]
    run = replace(made(2, {}), trials=(*retried, first, *rest))
    assert judge_gate(run).decision == "fails", "a disturbed trial shows nothing"


def test_where_neither_server_answers_nothing_was_measured_and_the_gate_ends() -> None:
    gates = [judge_gate(end_early(end_early(made(blocks, {}), BEFORE), AFTER)) for blocks in (4, 5)]
    assert [(gate.decision, gate.may_go_on) for gate in gates] == [("unmeasured", True), ("unmeasured", False)]
    (missing,) = gates[1].unmeasured
    assert missing.before is not None
    assert [(fault.kind, fault.trials) for fault in missing.before.faults] == [("died", 5)]
    mute = judge_gate(silence(silence(made(5, {}), BEFORE), AFTER))
    assert (mute.decision, mute.may_go_on) == ("unmeasured", False)


@pytest.mark.parametrize("break_server", [end_early, silence])
def test_a_fault_of_the_old_server_alone_is_reported_and_passes_nothing(
    break_server: Callable[[Run, str], Run],
) -> None:
    gate = judge_gate(break_server(made(5, {}), BEFORE))
    assert {row.outcome for row in gate.lines} == {"unsound"}
    assert (gate.decision, gate.may_go_on, gate.unmeasured) == ("open", False, ())


def test_a_stall_that_a_busy_machine_can_cause_fails_once_it_has_met_one_far_more_often() -> None:
    run = made(30, {})
    once = judge_gate(with_faults(run, AFTER, range(1, 3), audit="stalled"))
    assert once.decision == "passes"
    assert [(fault.before, fault.after, fault.blocks) for fault in once.faults] == [(0, 2, 30)]
    assert line(once, "cpu").blocks == 30, "the trials count, with their silence"
    assert judge_gate(with_faults(run, AFTER, range(1, 15), audit="stalled")).decision == "fails"
    shared = with_faults(with_faults(run, AFTER, range(1, 15), audit="stalled"), BEFORE, range(1, 12), audit="stalled")
    assert judge_gate(shared).decision == "passes"
    assert judge_gate(with_faults(run, BEFORE, range(1, 15), audit="stalled")).decision == "passes"


def test_where_the_generator_is_at_its_limit_no_rate_passes() -> None:
    run = made(20, {})

    def saturated(trial: Trial) -> Trial:
        assert trial.load is not None
        busy = replace(trial.load.generator.threads[0], cpu_user_s=0.95 * trial.load.plan.duration_s, spun_s=0.0)
        load = replace(trial.load, generator=replace(trial.load.generator, threads=(busy,)))
        return replace(trial, load=load, audits=(Audit(name="generator", passed=False, detail="busy"),))

    gate = judge_gate(replace(run, trials=tuple(map(saturated, run.trials))))
    assert (line(gate, "throughput").outcome, line(gate, "cpu").outcome) == ("bound", "within")
    assert (gate.decision, gate.may_go_on) == ("open", False)


@pytest.mark.parametrize("status", ["skipped", "failed"])
def test_a_server_that_could_not_be_measured_is_not_waited_for(status: Status) -> None:
    run = made(6, {})
    gone = [replace(trial, status=status) if trial.contestant == AFTER else trial for trial in run.trials]
    gate = judge_gate(replace(run, trials=tuple(gone)))
    assert (gate.decision, gate.may_go_on) == ("unmeasured", False)


def test_a_closed_loop_is_held_to_no_latency_and_an_open_one_to_no_throughput() -> None:
    gate = Gate(before=BEFORE, after=AFTER, margins={"throughput": 0.05, "cpu": 0.05, "p99": 0.25})
    assert select_metrics(gate, CLOSED) == ("throughput", "cpu")
    assert select_metrics(gate, OPEN) == ("p99", "cpu")
    assert select_metrics(gate, replace(CLOSED, metric="p99")) == ("throughput", "p99", "cpu")


def test_an_experiment_keeps_what_has_a_margin() -> None:
    gate = make_experiment(CLOSED, OPEN, throughput=0.1)
    assert [scenario.name for scenario in gate.scenarios] == ["most"]
    assert (gate.aa_share, gate.time_budget_s, gate.claims) == (0.0, 600.0, ())
    with pytest.raises(UserError, match=r"experiment 'web' measures nothing that has a margin \(p50\) in a gate"):
        make_experiment(CLOSED, p50=0.1)


def test_margins_are_read_in_per_cent() -> None:
    assert parse_margins(["p99=25", "cpu=2.5%"]) == {"p99": 0.25, "cpu": 0.025}
    assert parse_margins([]) == {"throughput": 0.05, "cpu": 0.05, "p99": 0.25}
    with pytest.raises(UserError, match=r"'p9' is no metric of a gate \(did you mean 'p99'\?\)"):
        parse_margins(["p9=5"])
    for wrong in ("cpu", "cpu=", "cpu=0", "cpu=100", "cpu=-5", "cpu=nan", "cpu=five"):
        with pytest.raises(UserError, match="in per cent: cpu=5"):
            parse_margins([wrong])


def test_a_resumed_gate_ends_with_the_exit_code_of_its_decision(capsys: pytest.CaptureFixture[str]) -> None:
    worse = made(9, {"throughput": 0.5})
    result = run_command.RunResult(exit_code=0, line={}, stored=worse, analysis=analyse(worse))
    done = run_command._conclude_gate(result)
    assert done.exit_code == 1
    assert "The new server is worse" in capsys.readouterr().err
