"""Commits in worktrees: each has its own files, is built by itself, and leaves nothing behind."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from netdyno.kit.errors import UserError
from netdyno.kit.paths import ROOT
from netdyno.measure.machine import environment
from netdyno.question.contestants import trees
from netdyno.question.contestants.contestants import discover, find_by_name
from netdyno.verbs.cli import main
from netdyno.verbs.own_servers import OwnServers
from netdyno.verbs.run import RunRequest
from tests.support.patience import PATIENCE_S, eventually


def git(repository: Path, *words: str) -> str:
    who = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
    done = subprocess.run(["git", "-C", str(repository), *who, *words], check=True, capture_output=True, text=True)
    return done.stdout


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """Two commits of one file, and a third state that is not committed."""
    home = tmp_path / "repository"
    home.mkdir()
    git(home, "init", "--quiet", "--initial-branch", "main")
    for text in ("old", "new"):
        (home / "server.sh").write_text(text)
        git(home, "add", ".")
        git(home, "commit", "--quiet", "-m", text)
    (home / "server.sh").write_text("not committed")
    return home


def test_each_commit_is_built_in_a_folder_of_its_own_and_put_away(
    repository: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with trees.check_out(repository, ["main~1", "HEAD"]) as folders:
        for folder in folders:
            trees.build(folder, "cp server.sh built")
        assert [(folder / "built").read_text() for folder in folders] == ["old", "new"]
    assert "not committed" in capsys.readouterr().err
    assert not any(folder.exists() for folder in folders)
    assert len(git(repository, "worktree", "list").splitlines()) == 1
    assert (repository / "server.sh").read_text() == "not committed"


HOOK = {"GIT_DIR": ".git", "GIT_WORK_TREE": "", "GIT_INDEX_FILE": ".git/index", "GIT_COMMON_DIR": ".git"}
"""What git gives its hooks, or a user has exported, as paths of a repository."""


def enter_hook(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, path in HOOK.items():
        monkeypatch.setenv(name, str(repository / path))
    monkeypatch.setenv("GIT_NAMESPACE", "elsewhere")
    monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
    monkeypatch.setenv("GIT_CONFIG_KEY_0", "core.bare")
    monkeypatch.setenv("GIT_CONFIG_VALUE_0", "true")


def test_the_hook_of_another_repository_does_not_choose_the_commits(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    git(elsewhere, "init", "--quiet", "--initial-branch", "main")
    for text in ("wrong", "wrong again"):
        (elsewhere / "server.sh").write_text(text)
        git(elsewhere, "add", ".")
        git(elsewhere, "commit", "--quiet", "-m", text)
    with monkeypatch.context() as hook:
        enter_hook(elsewhere, hook)
        own = environment.read_commit(repository)["git_commit"]
        with trees.check_out(repository, ["main~1", "HEAD"]) as folders:
            for folder in folders:
                trees.build(
                    folder, "env | grep ^GIT_ >variables || cp server.sh built; git log -1 --format=%s >subject"
                )
            built = [(folder / "built").read_text() for folder in folders]
            subjects = [(folder / "subject").read_text().strip() for folder in folders]
    assert built == subjects == ["old", "new"]
    assert own == git(repository, "rev-parse", "HEAD").strip()
    assert len(git(elsewhere, "worktree", "list").splitlines()) == 1


def test_the_same_commit_may_be_held_against_itself(repository: Path) -> None:
    with trees.check_out(repository, ["HEAD", "HEAD"]) as (first, second):
        assert first != second
        assert (first / "server.sh").read_text() == (second / "server.sh").read_text()


def test_sigterm_while_it_builds_ends_the_build_and_leaves_no_worktree(repository: Path, tmp_path: Path) -> None:
    begun = tmp_path / "begun"
    command = f"echo $$ >{begun}.new && mv {begun}.new {begun}; sleep 600 & wait"
    words = [
        "gate",
        "--base",
        "main~1",
        "--repository",
        str(repository),
        "--build",
        command,
        "--server",
        "{tree}/x {port}",
    ]
    words += ["--results", str(tmp_path / "results")]
    gate = subprocess.Popen(
        [sys.executable, "-m", "netdyno", *words], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )
    with gate:
        eventually(lambda: begun.exists() or gate.poll() is not None, "the build never began")
        gate.terminate()
        _, err = gate.communicate(timeout=PATIENCE_S)
    assert gate.returncode == 128 + signal.SIGTERM, err
    assert len(git(repository, "worktree", "list").splitlines()) == 1
    group = int(begun.read_text())
    eventually(lambda: not in_group(group), lambda: f"it goes on: {in_group(group)}")


def test_sigterm_while_a_build_is_being_started_ends_it_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class SignalledPopen(subprocess.Popen[str]):
        def __init__(self, *words: Any, **settings: Any) -> None:
            super().__init__(*words, **settings)
            started.append(self.pid)
            signal.raise_signal(signal.SIGTERM)

    started: list[int] = []
    monkeypatch.setattr(subprocess, "Popen", SignalledPopen)
    before = signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    try:
        with pytest.raises(SystemExit):
            trees.build(tmp_path, "sleep 600")
    finally:
        signal.signal(signal.SIGTERM, before)
        monkeypatch.undo()
    eventually(lambda: not in_group(started[0]), lambda: f"it goes on: {in_group(started[0])}")


def in_group(group: int) -> list[str]:
    """Return the living processes of a group; zombies do not count."""
    states = subprocess.run(["ps", "-e", "-o", "pgid=,stat="], check=True, capture_output=True, text=True).stdout
    return [line for line in states.splitlines() if line.split()[0] == str(group) and "Z" not in line.split()[1]]


def test_a_build_that_fails_says_so_and_leaves_nothing(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with (
        pytest.raises(UserError, match=r"the build failed in 0-\w+ \(exit code 3\)"),
        trees.check_out(repository, ["HEAD"]) as (folder,),
    ):
        trees.build(folder, "seq 100; echo the compiler is gone; exit 3")
    printed = capsys.readouterr().err.splitlines()
    assert printed[-2:] == ["100", "the compiler is gone"], "the end of what a build said is why it failed"
    assert "50" not in printed
    assert len(git(repository, "worktree", "list").splitlines()) == 1


def test_a_folder_without_repository_or_commit_is_reported(repository: Path, tmp_path: Path) -> None:
    for place, ref in ((repository, "gone"), (tmp_path, "HEAD")):
        with pytest.raises(UserError, match="git in "), trees.check_out(place, [ref]):
            pass


def test_a_contestant_under_another_name_is_not_built_again() -> None:
    contestant = find_by_name(discover(ROOT), "epoll-reactor")
    renamed = trees.rename_server(contestant, "before")
    assert (renamed.name, renamed.command) == ("before", contestant.command)
    assert not renamed.manifest.is_built
    assert renamed.manifest.workloads == contestant.manifest.workloads


def test_a_gate_starts_the_server_of_each_commit(
    repository: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    requested: list[OwnServers] = []

    def decide(run: RunRequest, *_: object) -> int:
        requested.append(run.own)
        return 0

    monkeypatch.setattr("netdyno.verbs.gate.decide", decide)
    words = ["--base", "main~1", "--repository", str(repository), "--server", "sh {tree}/built {port}"]
    assert main(["gate", *words, "--build", "cp server.sh built", "--results", str(tmp_path)]) == 0, capsys.readouterr()
    ((before, after),) = [own.commands for own in requested]
    commits = git(repository, "log", "--format=%H").split()
    assert before != after
    assert f"/0-{commits[1][:12]}/built " in before
    assert f"/1-{commits[0][:12]}/built " in after
    assert requested[0].names == ("before", "after")
