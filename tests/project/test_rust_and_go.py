"""The tests of what servers in Rust and in Go share, by the test runners of these languages, and how all of it is laid
out. Their builders keep what they compile in the build directory, where the servers' own build has left most of it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from netdyno.base.paths import ROOT, build_dir
from netdyno.contestants.contestants import discover

CRATES = sorted({file.parent for file in ROOT.glob("servers/**/*.test.rs")})
MODULES = sorted({file.parent for file in ROOT.glob("servers/**/*_test.go")})
RUST = sorted(map(str, ROOT.glob("servers/**/*.rs")))
GO = sorted(map(str, ROOT.glob("servers/**/*.go")))


def run(*command: str, cwd: Path = ROOT, **environment: str) -> str:
    done = subprocess.run(
        command, cwd=cwd, env={**os.environ, **environment}, capture_output=True, text=True, timeout=240, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def skip_unless_built(kind: str) -> None:
    """What keeps a server of this kind from being built keeps its tests from being."""
    reasons = [one.why_not for one in discover() if one.manifest.kind == kind]
    assert reasons
    if all(reasons):
        pytest.skip(reasons[0])


@pytest.mark.needs_build
@pytest.mark.parametrize("crate", CRATES, ids=[str(crate.relative_to(ROOT)) for crate in CRATES])
def test_rust(crate: Path) -> None:
    skip_unless_built("cargo")
    options = ("--release", "--quiet", "--offline", "--jobs", "2", "--target-dir", str(build_dir() / "cargo"))
    said = run("cargo", "test", "--test", "*", *options, cwd=crate)
    assert re.search(r"^test result: ok\. [1-9]", said, re.MULTILINE), said


@pytest.mark.needs_build
@pytest.mark.parametrize("module", MODULES, ids=[str(module.relative_to(ROOT)) for module in MODULES])
def test_go(module: Path) -> None:
    skip_unless_built("go")
    caches = {"GOCACHE": str(build_dir() / "go/cache"), "GOPATH": str(build_dir() / "go/path")}
    offline = {"CGO_ENABLED": "0", "GOFLAGS": "", "GOWORK": "off", "GOPROXY": "off", "GOTOOLCHAIN": "local"}
    # Compiled as the servers are (cmake/kinds/go.cmake), so that the standard library is not compiled again.
    said = run("go", "test", "-v", "-p", "2", "-trimpath", "-vet=off", ".", cwd=module, **caches, **offline)
    assert re.search(r"^--- PASS", said, re.MULTILINE), said


@pytest.mark.skipif(shutil.which("rustfmt") is None, reason="rustfmt is not installed (package rustfmt-web)")
def test_rust_is_laid_out_by_rustfmt() -> None:
    run("rustfmt", "--check", "--edition", "2021", *RUST)


@pytest.mark.skipif(shutil.which("gofmt") is None, reason="gofmt is not installed (package golang-go)")
def test_go_is_laid_out_by_gofmt() -> None:
    assert run("gofmt", "-l", *GO) == ""
