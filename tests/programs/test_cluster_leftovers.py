"""The next start of a cluster removes the temporary files that kill -9 of one left, and nothing of a living one."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from netdyno.question.contestants import stand_in
from tests.support.patience import PATIENCE_S


def command(*words: str) -> list[str]:
    return [sys.executable, "-m", "netdyno", "cluster", *words]


@contextmanager
def standing(temporary: Path, *words: str) -> Iterator[subprocess.Popen[str]]:
    """A scheduler or host, once it stands."""
    environment = os.environ | {"TMPDIR": str(temporary)}
    with subprocess.Popen(command(*words), stdout=subprocess.PIPE, text=True, env=environment) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline().startswith(("scheduler at", "joined"))
            yield process
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(PATIENCE_S)


def test_a_killed_cluster_leaves_nothing_once_another_has_started(tmp_path: Path) -> None:
    temporary, folder = tmp_path / "temporary", str(tmp_path / "hosts")
    temporary.mkdir()
    url = f"tls://127.0.0.1:{stand_in.find_free_port('127.0.0.1')}"
    subprocess.run(command("init", folder, "--scheduler", url), check=True, stdout=subprocess.DEVNULL)

    def names() -> set[str]:
        return {path.name for path in temporary.iterdir()}

    scheduler = ["scheduler", "--cluster", folder]
    with standing(temporary, *scheduler) as first:
        port = str(stand_in.find_free_port("127.0.0.1"))  # not before the scheduler has its own, or it may be the same
        join = ["join", url, "--as", "server", "--cluster", folder, "--address", "127.0.0.1", "--port", port]
        with standing(temporary, *join) as server:
            for process in (server, first):
                process.kill()
                process.wait()
    dead = names()
    assert {name.rpartition("-")[0] for name in dead} == {"netdyno-scheduler", "netdyno-host"}
    with standing(temporary, *scheduler):
        living = names() - dead
        with standing(temporary, *join):
            assert living < names()
            assert not names() & dead
    assert names() == set()
