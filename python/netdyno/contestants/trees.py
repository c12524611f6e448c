"""A repository as it was and as it is: each commit in a git worktree of its own, built there, put away after use."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType

import msgspec

from netdyno.base import held_signals
from netdyno.base.errors import UserError
from netdyno.base.temporary import temporary_folder
from netdyno.contestants import building, contestants
from netdyno.model.contestant import Contestant

TREE = "{tree}"
_PRESET = "release"
_TAIL = 15


@contextmanager
def checked_out(repository: Path, refs: Sequence[str]) -> Iterator[tuple[Path, ...]]:
    """A folder for each, for as long as it is needed, and not longer where SIGTERM ends the program. Raises UserError
    where one is no commit."""
    commits = [_git(repository, "rev-parse", "--verify", "--quiet", f"{ref}^{{commit}}", what=ref) for ref in refs]
    if _git(repository, "status", "--porcelain", "--untracked-files=no"):
        print("netdyno: what is not committed in your repository is not in this comparison", file=sys.stderr)
    with _ended_by_sigterm(), temporary_folder("gate") as place:
        folders = tuple(place / f"{number}-{commit[:12]}" for number, commit in enumerate(commits))
        try:
            for folder, commit in zip(folders, commits, strict=True):
                _git(repository, "worktree", "add", "--quiet", "--detach", str(folder), commit)
            yield folders
        finally:
            for folder in folders:
                if folder.exists():
                    _git(repository, "worktree", "remove", "--force", str(folder))


@contextmanager
def _ended_by_sigterm() -> Iterator[None]:
    """Within it, SIGTERM leaves through what cleans up, as Ctrl-C does; a run within it has a handler of its own."""

    def end(number: int, _: FrameType | None) -> None:
        raise SystemExit(128 + number)

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _git(repository: Path, *words: str, what: str = "") -> str:
    """What it says. Raises UserError where it refuses."""
    try:
        done = subprocess.run(["git", "-C", str(repository), *words], capture_output=True, text=True, check=False)
    except OSError as error:
        raise UserError(f"git cannot be started: {error.strerror}") from error
    if done.returncode:
        told = done.stderr.strip().splitlines()
        reason = told[-1] if told else f"{what!r} is no commit"
        raise UserError(f"git in {repository}: {reason}")
    return done.stdout.strip()


def build(tree: Path, command: str) -> None:
    """Run a shell's command there. Raises UserError with the end of what it said where it fails."""
    _run(["sh", "-c", command], tree)


def contestant(tree: Path, name: str) -> Contestant:
    """A server of this project as that tree has it, built and ready to be started. Raises UserError where it has none
    of that name, or it cannot be built."""
    place = tree / "build" / _PRESET
    found = contestants.by_name(contestants.discover(tree, place), name)
    if targets := building.target(found, "server"):
        _run(["cmake", "--preset", _PRESET], tree)
        _run(["cmake", "--build", str(place), "--target", *targets], tree)
        found = contestants.by_name(contestants.discover(tree, place), name)
    return contestants.prepare(found, tree, place)


def renamed(found: Contestant, name: str) -> Contestant:
    """The same under another name, as a program that nobody needs to build."""
    manifest = msgspec.structs.replace(found.manifest, kind="command", run=found.command, build=())
    return msgspec.structs.replace(found, name=name, manifest=manifest)


def _run(command: Sequence[str], tree: Path) -> None:
    """In a process group of its own: a build that is interrupted ends with all that it started. A signal that comes
    while it is being started waits until there is somebody who ends it."""
    with held_signals.hold() as held:
        try:
            build = subprocess.Popen(
                command,
                cwd=tree,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
                start_new_session=True,
                preexec_fn=held.release_in_child,
            )
        except OSError as error:
            raise UserError(f"{command[0]} cannot be started: {error.strerror}") from error
        with build:
            try:
                held.release()
                said, _ = build.communicate()
            except BaseException:
                with suppress(ProcessLookupError):
                    os.killpg(build.pid, signal.SIGKILL)
                raise
    if build.returncode:
        print(*said.splitlines()[-_TAIL:], sep="\n", file=sys.stderr)
        raise UserError(f"the build failed in {tree.name} (exit code {build.returncode}): {' '.join(command)}")
