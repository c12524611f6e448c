"""Commits of a repository, each checked out into a git worktree of its own, built there, and removed after use."""

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

from netdyno.kit import git, held_signals
from netdyno.kit.errors import UserError
from netdyno.kit.temporary import temporary_folder
from netdyno.model.contestant import Contestant
from netdyno.question.contestants import building, contestants

TREE = "{tree}"
_PRESET = "release"
_TAIL = 15


@contextmanager
def check_out(repository: Path, refs: Sequence[str]) -> Iterator[tuple[Path, ...]]:
    """Check out each commit into a folder that exists only within the context, even where a signal ends the program.
    Raises UserError for a ref that is no commit."""
    commits = [_run_git(repository, "rev-parse", "--verify", "--quiet", f"{ref}^{{commit}}", what=ref) for ref in refs]
    if _run_git(repository, "status", "--porcelain", "--untracked-files=no"):
        print("netdyno: what is not committed in your repository is not in this comparison", file=sys.stderr)
    with _exit_on_signals(), temporary_folder("gate") as folder_of_trees:
        folders = tuple(folder_of_trees / f"{number}-{commit[:12]}" for number, commit in enumerate(commits))
        try:
            for folder, commit in zip(folders, commits, strict=True):
                _run_git(repository, "worktree", "add", "--quiet", "--detach", str(folder), commit)
            yield folders
        finally:
            for folder in folders:
                if folder.exists():
                    _run_git(repository, "worktree", "remove", "--force", str(folder))


@contextmanager
def _exit_on_signals() -> Iterator[None]:
    """Let SIGTERM and SIGHUP leave through the clean-up, as Ctrl-C does; a run within the context has handlers of its
    own."""

    def end(number: int, _: FrameType | None) -> None:
        raise SystemExit(128 + number)

    numbers = [number for number in held_signals.list_ending_signals() if number != signal.SIGINT]
    before = {number: signal.signal(number, end) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _run_git(repository: Path, *words: str, what: str = "") -> str:
    """Run git and return its output. Raises UserError where it fails."""
    try:
        process = git.run_git(repository, *words)
    except OSError as error:
        raise UserError(f"git cannot be started: {error.strerror}") from error
    if process.returncode:
        lines = process.stderr.strip().splitlines()
        reason = lines[-1] if lines else f"{what!r} is no commit"
        raise UserError(f"git in {repository}: {reason}")
    return process.stdout.strip()


def build(tree: Path, command: str) -> None:
    """Run a shell command in a tree. Raises UserError with the end of its output where it fails."""
    _run_build(["sh", "-c", command], tree)


def build_server(tree: Path, name: str) -> Contestant:
    """Return a server of this project as that tree has it, built and ready to be started. Raises UserError where the
    tree has none of that name, or it cannot be built."""
    build_folder = tree / "build" / _PRESET
    server = contestants.find_by_name(contestants.discover(tree, build_folder), name)
    if targets := building.list_targets(server, "server"):
        _run_build(["cmake", "--preset", _PRESET], tree)
        _run_build(["cmake", "--build", str(build_folder), "--target", *targets], tree)
        server = contestants.find_by_name(contestants.discover(tree, build_folder), name)
    return contestants.prepare(server, tree, build_folder)


def rename_server(server: Contestant, name: str) -> Contestant:
    """Return the same server under another name, as a program that needs no build."""
    manifest = msgspec.structs.replace(server.manifest, kind="command", run=server.command, build=())
    return msgspec.structs.replace(server, name=name, manifest=manifest)


def _run_build(command: Sequence[str], tree: Path) -> None:
    """Run a build in a process group of its own: when it is interrupted, all that it started ends. A signal that comes
    while it is being started waits until the group can be ended."""
    with held_signals.hold() as held:
        try:
            build = subprocess.Popen(
                command,
                cwd=tree,
                env=git.remove_git_variables(),
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
                output, _ = build.communicate()
            except BaseException:
                with suppress(ProcessLookupError):
                    os.killpg(build.pid, signal.SIGKILL)
                raise
    if build.returncode:
        print(*output.splitlines()[-_TAIL:], sep="\n", file=sys.stderr)
        raise UserError(f"the build failed in {tree.name} (exit code {build.returncode}): {' '.join(command)}")
