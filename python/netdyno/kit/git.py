"""Git, on the repository that is requested, whatever the environment of a hook names."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path


def remove_git_variables() -> dict[str, str]:
    """Return this process's environment without GIT_*: git gives its hooks GIT_DIR, GIT_INDEX_FILE and more, which
    outrank `git -C` and the working directory (git(1))."""
    return {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}


def run_git(folder: Path, *words: str, timeout_s: float | None = None) -> subprocess.CompletedProcess[str]:
    """Run git in a folder. Raises OSError and subprocess.TimeoutExpired."""
    # Git refuses a tree of another user (safe.directory, git-config(1)), as its configuration may name programs to
    # start. The callers run the tree's own programs anyway.
    return subprocess.run(
        ["git", "-c", "safe.directory=*", "-C", str(folder), *words],
        env=remove_git_variables(),
        capture_output=True,
        text=True,
        errors="replace",
        timeout=timeout_s,
        check=False,
    )
