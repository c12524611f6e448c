"""Profiles of a run's servers: which are made, under which load, and where they are stored."""

from __future__ import annotations

import io
import re
from pathlib import Path

import pytest
from msgspec.structs import replace

from netdyno.measure.run import needed, preparation, runner
from netdyno.measure.trial import profiled
from netdyno.measure.trial.context import TrialContext
from netdyno.model.contestant import Contestant
from netdyno.model.experiment import Experiment
from netdyno.model.profile import Profile, Profiled
from netdyno.store import profiles
from netdyno.verbs import profile
from netdyno.verbs.cli import main
from tests.support.builders.made_run import made_run
from tests.support.builders.stored import stored


@pytest.fixture
def looked_at(monkeypatch: pytest.MonkeyPatch, context: TrialContext) -> list[profiled.ProfileTask]:
    """The servers that would have been profiled."""
    tasks: list[profiled.ProfileTask] = []

    def pretend(task: profiled.ProfileTask, _context: TrialContext) -> tuple[Profile, Profile]:
        tasks.append(task)
        name, why = task.contestant.name, task.contestant.why_not
        on = Profile(server=name, sort="on-cpu", missing=why, stacks={} if why else {("main", "a"): 5.0})
        return on, Profile(server=name, sort="off-cpu", missing="no kernel\x1b[2J")

    monkeypatch.setattr(profiled, "profile", pretend)
    monkeypatch.setattr(preparation, "set_up", lambda *_args, **_named: (context, {}))
    return tasks


def test_each_server_of_each_question_at_the_middle_of_its_levels(
    experiment: Experiment, contestant: Contestant, looked_at: list[profiled.ProfileTask], tmp_path: Path
) -> None:
    missing = replace(contestant, name="other", available=False, why_not="Folly not found")
    (first,) = experiment.with_each(contestants=("fake", "other")).scenarios
    first = replace(first, factors={"connections": (1, 2, 40)})
    requested = replace(experiment, scenarios=(first, replace(first, name="../second", contestants=("fake",))))
    output = io.StringIO()
    profile.run_after_trials(
        requested, needed.PreparedContestants((contestant, missing), ()), tmp_path, tmp_path / "build", output
    )

    assert [(task.cell.scenario, task.contestant.name, task.settings.connections) for task in looked_at] == [
        ("echo", "fake", 2),
        ("echo", "other", 2),
        ("../second", "fake", 2),
    ]
    assert sorted(path.name for path in tmp_path.iterdir() if path.is_file()) == [
        "profile-.._second.fake.on-cpu.folded",
        "profile-.._second.json",
        "profile-echo.fake.on-cpu.folded",
        "profile-echo.json",
    ]
    second, echo = profiles.read(tmp_path).questions
    assert (second.question, second.servers) == ("../second", ["fake"])
    assert (echo.question, echo.load, echo.servers) == ("echo", "echo, connections 2, 1 s", ["fake", "other"])
    assert echo.profiles[0].stacks == {("main", "a"): 5.0}
    assert echo.profiles[2].missing == "Folly not found"
    assert "other, on-cpu: Folly not found" in output.getvalue()
    assert "\x1b" not in output.getvalue()


def names_in(page: Path) -> list[str]:
    """Return the names of the functions in a report."""
    return re.findall('<th scope="row" class="function">(.*?)</th>', page.read_text())


def test_the_report_has_them_when_the_run_ends_and_whenever_it_is_written_again(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = made_run()
    name = run.experiment.scenarios[-1].name
    run = replace(run, trials=tuple(trial for trial in run.trials if trial.scenario == name))
    folder = stored(run, tmp_path)
    outcome = runner.RunOutcome(run.run_id, folder, 0)
    seen = Profile(server=run.trials[0].contestant, sort="on-cpu", stacks={("main", "a"): 5.0}, samples=9)

    def record_profile(_asked: Experiment, _ready: needed.PreparedContestants, where: Path, *_: object) -> None:
        assert names_in(where / "report.html") == []  # the figures are there before anything else may fail
        profiles.write(Profiled(question=name, load="echo", profiles=(seen,)), where, f"profile-{name}")

    monkeypatch.setattr(needed, "make", lambda *_, **__: needed.PreparedContestants((), ()))
    monkeypatch.setattr(runner, "execute", lambda *_, **__: outcome)
    monkeypatch.setattr(profile, "run_after_trials", record_profile)
    main(["run", "smoke", "--profile", "--results", str(tmp_path)])
    assert names_in(folder / "report.html") == ["a", "main"]

    (folder / "report.html").unlink()
    (folder / f"profile-{name}.{seen.server}.on-cpu.folded").write_text("\x1b")
    (folder / "profile-other.json").write_text("{")
    assert main(["report", run.run_id, "--results", str(tmp_path)]) == 0
    lines = capsys.readouterr().err.splitlines()
    assert [line.partition(" is damaged")[0] for line in lines] == [
        f"netdyno: profile-{name}.{seen.server}.on-cpu.folded",
        "netdyno: profile-other.json",
    ]
    assert names_in(folder / "report.html") == []
    assert "profile-other.json is damaged" in (folder / "report.html").read_text()
