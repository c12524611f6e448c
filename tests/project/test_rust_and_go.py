"""The tests of what servers in Rust and in Go share, and how all of it is laid out. Their builders keep what they
compile in the build directory, where the servers' own build has left most of it."""

from __future__ import annotations

import graphlib
import os
import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest

from netdyno.kit.paths import ROOT, build_dir
from netdyno.measure.machine.environment import parse_cmake_cache
from netdyno.question.contestants.contestants import discover
from tests.support.golden_sessions import expect_golden_sessions

CRATES = sorted({file.parent for file in ROOT.glob("servers/**/*.test.rs")})
SHARED_CRATES = sorted(path.parent for path in ROOT.glob("servers/_shared/*/lib.rs"))
RUST = sorted(map(str, ROOT.glob("servers/**/*.rs")))
GO = sorted(map(str, [*ROOT.glob("servers/**/*.go"), *ROOT.glob("tests/**/*.go")]))


def sees_in_crate(module: Path) -> set[str]:
    """Return the modules of its crate that a module uses; what the root declares itself is "lib"."""
    used = re.findall(r"\bcrate::(\w+|\{[^}]*\})", module.read_text(encoding="utf-8"))
    names = {name for group in used for name in re.findall(r"\w+", group)}
    return {name if name.islower() else "lib" for name in names}


def run(*command: str, cwd: Path = ROOT, **environment: str) -> str:
    done = subprocess.run(
        command, cwd=cwd, env={**os.environ, **environment}, capture_output=True, text=True, timeout=240, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def skip_unless_built(kind: str) -> None:
    """What keeps a server of this kind from being built keeps its tests from being."""
    reasons = [contestant.why_not for contestant in discover() if contestant.manifest.kind == kind]
    assert reasons
    if all(reasons):
        pytest.skip(reasons[0])


def cargo() -> tuple[str, ...]:
    """As cmake/kinds/cargo.cmake calls it."""
    cache = parse_cmake_cache((build_dir() / "CMakeCache.txt").read_text())
    fixed = (f"CARGO_HOME={build_dir() / 'cargo/home'}", f"RUSTC={cache['NETDYNO_RUSTC']}", "CARGO_ENCODED_RUSTFLAGS=")
    return "sh", str(build_dir() / "environment.sh"), "env", *fixed, cache["NETDYNO_CARGO"]


@pytest.mark.needs_build
@pytest.mark.parametrize("crate", CRATES, ids=[str(crate.relative_to(ROOT)) for crate in CRATES])
def test_rust(crate: Path) -> None:
    skip_unless_built("cargo")
    options = ("--release", "--quiet", "--offline", "--jobs", "2", "--target-dir", str(build_dir() / "cargo"))
    output = run(*cargo(), "test", "--test", "*", *options, cwd=crate)
    assert re.search(r"^test result: ok\. [1-9]", output, re.MULTILINE), output


@pytest.mark.needs_build
def test_every_crate_that_is_compiled_has_its_version_in_a_manifest() -> None:
    """There is no lock file: what a crate asks for itself would else be the newest of the day."""
    skip_unless_built("cargo")
    manifests = [tomllib.loads(path.read_text()) for path in ROOT.glob("servers/**/Cargo.toml")]
    wishes = [wish for manifest in manifests for wish in manifest.get("dependencies", {}).items()]
    versions = {
        (name, wish) if isinstance(wish, str) else (wish.get("package", name), wish.get("version"))
        for name, wish in wishes
    }
    options = ("--offline", "--locked", "--edges", "normal,build", "--prefix", "none", "--format", "{p}")
    compiled: set[tuple[str, str]] = set()
    for contestant in discover():
        if contestant.manifest.kind == "cargo":
            output = run(
                *cargo(), "tree", *options, "--manifest-path", str(ROOT / "servers" / contestant.name / "Cargo.toml")
            )
            compiled |= {
                (match[1], f"={match[2]}") for match in re.finditer(r"^(\S+) v(\S+)(?: \(\*\))?$", output, re.M)
            }
    assert {"tokio", "libc"} <= {name for name, _ in compiled}
    assert sorted(compiled - versions) == []


@pytest.mark.needs_build
def test_go_sessions(tmp_path: Path) -> None:
    skip_unless_built("go")
    shutil.copy(ROOT / "tests/project/golden_sessions.go", tmp_path / "main.go")
    module = f"module golden\n\ngo 1.19\n\nrequire netdyno v0.0.0\n\nreplace netdyno => {ROOT}/servers/_shared/go\n"
    (tmp_path / "go.mod").write_text(module)
    caches = {"GOCACHE": str(build_dir() / "go/cache"), "GOPATH": str(build_dir() / "go/path")}
    offline = {"CGO_ENABLED": "0", "GOFLAGS": "", "GOWORK": "off", "GOPROXY": "off", "GOTOOLCHAIN": "local"}
    # Compiled as the servers are (cmake/kinds/go.cmake), so that the standard library is not compiled again.
    run("go", "build", "-p", "2", "-trimpath", "-o", "sessions", ".", cwd=tmp_path, **caches, **offline)
    expect_golden_sessions([str(tmp_path / "sessions")], places=64)


@pytest.mark.quick
@pytest.mark.parametrize("crate", SHARED_CRATES, ids=[crate.name for crate in SHARED_CRATES])
def test_the_modules_of_a_crate_see_each_other_in_no_circle(crate: Path) -> None:
    modules = [path for path in crate.glob("*.rs") if not path.name.endswith(".test.rs")]
    sees = {module.stem: sees_in_crate(module) for module in modules}
    sees["lib"] |= sees.keys() - {"lib"}  # the root names them all
    graphlib.TopologicalSorter(sees).prepare()


@pytest.mark.skipif(shutil.which("rustfmt") is None, reason="rustfmt is not installed (package rustfmt-web)")
def test_rust_is_laid_out_by_rustfmt() -> None:
    run("rustfmt", "--check", "--edition", "2021", *RUST)


@pytest.mark.skipif(shutil.which("gofmt") is None, reason="gofmt is not installed (package golang-go)")
def test_go_is_laid_out_by_gofmt() -> None:
    assert run("gofmt", "-l", *GO) == ""
