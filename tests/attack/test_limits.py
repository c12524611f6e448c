"""Runs on machines that give them too little: each ends with readable results, or with one line that says why, and
never with a traceback."""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random

import pytest

from netdyno.kit.paths import ROOT
from netdyno.store import read, schema
from tests.harness.test_cli import NETDYNO, TINY, run_tiny
from tests.support.patience import PATIENCE_S

OWN_MOUNTS = ("unshare", "--user", "--map-root-user", "--mount")
ON_A_SMALL_DISK = (
    'mount -t tmpfs -o size="$1" none "$2" && shift && cd "$1" && shift && "$@"; code=$?; cp -r . ../kept; exit $code'
)
WITH_A_READ_ONLY_TREE = (
    'mount --bind "$1" "$1" && mount -o remount,ro,bind "$1" && ! touch "$1/new" 2>&- && cd . && shift && "$@"'
)
MIB = 1 << 20
LIMITS = (
    (resource.RLIMIT_NOFILE, 8, 120),
    (resource.RLIMIT_AS, 100 * MIB, 900 * MIB),
    (resource.RLIMIT_NPROC, 1, 20),
    (resource.RLIMIT_FSIZE, 0, 300_000),
)
"""Each limit, with its least and its greatest value."""
AS_ANOTHER_USER = ("setpriv", "--reuid", "64999", "--inh-caps=-all,+dac_override", "--ambient-caps=-all,+dac_override")
"""A user for RLIMIT_NPROC: the kernel does not limit root, and no other program runs as this user."""


@pytest.fixture(autouse=True)
def _build(fake_build: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NETDYNO_BUILD", str(fake_build))


@pytest.fixture
def tiny(tmp_path: Path) -> Callable[..., tuple[str, ...]]:
    """A maker of the command of a run of one trial."""
    toml = tmp_path / "tiny.toml"
    toml.write_text(TINY.replace("[1, 2]", "[1]"))
    return lambda results: (*NETDYNO, *run_tiny(str(toml), results))


def done(command: Sequence[str], *limits: tuple[int, int]) -> subprocess.CompletedProcess[str]:
    def limit() -> None:
        for which, value in limits:
            resource.setrlimit(which, (value, value))

    environment = os.environ | {"PYTHONPATH": str(ROOT / "python")}
    return subprocess.run(
        command, preexec_fn=limit, env=environment, capture_output=True, text=True, timeout=2 * PATIENCE_S, check=False
    )


def expect_an_orderly_end(ended: subprocess.CompletedProcess[str], results: Path) -> None:
    """Expect success or a message, and readable results."""
    assert "Traceback" not in ended.stderr
    assert ended.returncode in (0, 1, 2), ended.stderr
    if ended.returncode == 2:
        assert ended.stderr.splitlines()[-1].startswith("netdyno: ")
    for path in results.glob(f"*/{schema.FILE_NAME}"):
        if path.stat().st_size:
            read.load(path)


def needs_own_mounts() -> None:
    if shutil.which("unshare") is None or done((*OWN_MOUNTS, "true")).returncode:
        pytest.skip("no mount namespaces here")


def test_results_on_a_disk_that_is_full(seed: int, tiny: Callable[..., tuple[str, ...]], tmp_path: Path) -> None:
    needs_own_mounts()
    chance = Random(seed)
    disk = tmp_path / "disk"
    disk.mkdir()
    size = str(4096 * chance.randrange(1, 60))
    ended = done((*OWN_MOUNTS, "sh", "-c", ON_A_SMALL_DISK, "sh", size, str(disk), *tiny(disk)))
    expect_an_orderly_end(ended, tmp_path / "kept")


def test_a_tree_that_none_may_write_to(seed: int, tiny: Callable[..., tuple[str, ...]], tmp_path: Path) -> None:
    needs_own_mounts()
    results = tmp_path / "results" if seed % 2 else ROOT / "results"
    ended = done((*OWN_MOUNTS, "sh", "-c", WITH_A_READ_ONLY_TREE, "sh", str(ROOT), *tiny(results)))
    expect_an_orderly_end(ended, results)
    assert ended.returncode == (0 if seed % 2 else 2), ended.stderr


def test_a_limit_of_the_shell(seed: int, tiny: Callable[..., tuple[str, ...]], tmp_path: Path) -> None:
    chance = Random(seed)
    results = tmp_path / "results"
    which, least, most = LIMITS[seed % len(LIMITS)]
    prefix = AS_ANOTHER_USER if which == resource.RLIMIT_NPROC and os.geteuid() == 0 else ()
    ended = done((*prefix, *tiny(results)), (which, chance.randint(least, most)))
    expect_an_orderly_end(ended, results)
