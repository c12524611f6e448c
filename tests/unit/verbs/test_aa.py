"""`./netdyno aa`: the number of comparisons, and the exit code when a contestant differs from itself too often."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from netdyno.analysis.found.control import Control
from netdyno.kit.errors import UserError
from netdyno.kit.paths import ROOT
from netdyno.kit.statistics.block_counts import FEWEST_BLOCKS
from netdyno.model.experiment import Experiment
from netdyno.model.levels import combinations
from netdyno.question import experiment as experiments
from netdyno.question.plan import choose_twins, estimate_seconds, plan
from netdyno.verbs import aa, run
from netdyno.verbs.cli import main
from tests.support.builders.analysed import analysed
from tests.support.builders.made_run import made_run
from tests.support.builders.made_twins import asked, contestant, made_control, servers


def long_form(comparisons: int, names: str = "abcde") -> Experiment:
    return aa.spread(asked(0.5, names=names), comparisons, servers(names), {})


@pytest.mark.parametrize("comparisons", [1, 3, 7, 40, 41, 100])
@pytest.mark.parametrize("names", ["a", "abcde"])
def test_the_long_form_has_just_so_many_comparisons(comparisons: int, names: str) -> None:
    experiment = long_form(comparisons, names)
    chosen = choose_twins(experiment, servers(names))
    assert len(chosen) == comparisons
    assert sum(len(scenario.contestants) for scenario in experiment.scenarios) == comparisons
    assert all(len(list(combinations(scenario))) == 1 for scenario in experiment.scenarios)
    assert len({scenario.name for scenario in experiment.scenarios}) == len(experiment.scenarios)
    assert sum(cell.twin for cell in plan(experiment, chosen)) == comparisons * experiment.blocks


def test_a_server_that_cannot_have_a_load_takes_no_comparison_of_it() -> None:
    mixed = servers("abcd") | {"e": contestant("e", workloads=("chat",))}
    experiment = aa.spread(asked(0.5), 8, mixed, {})
    assert [scenario.contestants for scenario in experiment.scenarios] == [("a", "b", "c", "d")] * 2
    with pytest.raises(UserError, match="none of these contestants can be measured"):
        aa.spread(asked(0.5), 8, servers(workloads=("chat",)), {})


def test_a_workload_that_the_experiment_has_not_is_a_slip_of_the_pen() -> None:
    assert aa.select_workload(asked(), None) == asked()
    assert aa.select_workload(asked(), "echo") == asked()
    with pytest.raises(UserError, match="e has no scenario of 'chat'"):
        aa.select_workload(asked(), "chat")


def test_by_itself_it_is_45_comparisons_of_several_contestants_and_loads() -> None:
    experiment = experiments.load(ROOT / "experiments" / "aa.toml")
    speaks = ("rpc", "echo", "lines", "http")
    contestants = {name: contestant(name, workloads=speaks) for name in experiment.scenarios[0].contestants}
    assert len(choose_twins(experiment, contestants)) == 45
    assert experiment.blocks >= FEWEST_BLOCKS
    assert estimate_seconds(experiment, contestants) <= 9 * 60


@pytest.mark.parametrize(
    ("control", "code"),
    [(made_control(2, 40), 0), (made_control(3, 40), 1), (made_control(7, 40), 1), (made_control(0, 40, pairs=4), 1)],
)
def test_the_exit_code_says_whether_it_is_too_often(
    control: Control, code: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    analysis = replace(analysed(made_run()), control=control)
    done = run.RunResult(exit_code=0, line={"run_id": "r"}, stored=made_run(), analysis=analysis)
    monkeypatch.setattr(run, "carry_out", lambda *_: done)
    assert main(["aa", "--json"]) == code
    assert '"aa": {"comparisons": 40, "judged": ' in capsys.readouterr().out


def test_no_system_calls_are_traced_where_none_asks_for_them(monkeypatch: pytest.MonkeyPatch) -> None:
    requests: list[run.RunRequest] = []

    def carry_out(request: run.RunRequest, *_: object) -> run.RunResult:
        requests.append(request)
        return run.RunResult(exit_code=1, line={}, stored=made_run(), analysis=None)

    monkeypatch.setattr(run, "carry_out", carry_out)
    main(["aa"])
    (request,) = requests
    assert (request.experiment, request.trace) == ("aa", "never")


def test_too_few_blocks_for_any_verdict_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["aa", "--blocks", "5"]) == 2
    assert "--blocks" in capsys.readouterr().err
