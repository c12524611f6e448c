"""The record of the machine: its parsing on samples, and all of it on this machine."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import msgspec
import pytest

from netdyno.kit.paths import ROOT
from netdyno.measure.machine import environment, pinning
from netdyno.model.experiment import Experiment
from netdyno.model.run import Environment

CACHE = """# comment
//Help text
CMAKE_BUILD_TYPE:STRING=Release
CMAKE_CXX_COMPILER:FILEPATH=/usr/bin/c++
CMAKE_CXX_FLAGS:STRING=
CMAKE_CXX_FLAGS_RELEASE:STRING=-O3 -DNDEBUG
"""
OTHERS = """NETDYNO_RUSTC:FILEPATH={}/rustc
NETDYNO_GO:FILEPATH=NETDYNO_GO-NOTFOUND
"""


def test_everything_of_rule_10_is_there(experiment: Experiment, tmp_path: Path) -> None:
    (tmp_path / "CMakeCache.txt").write_text(CACHE)
    facts = environment.collect(experiment, pinning.choose(), tmp_path)
    expected = "kernel cores_online governor git_commit git_dirty link pinning.server pinning.note limit.nofile libc"
    assert set(expected.split()) <= facts.keys()
    assert {"compiler", "compiler_flags", "build_type", "python", "clocksource"} <= facts.keys()
    assert facts["compiler_flags"] == "-O3 -DNDEBUG"
    assert facts["sysctl.net.core.somaxconn"]
    assert facts["ground.timer_slack_ns"] == 1
    assert facts["git_commit"] == environment._read_output(["git", "-C", str(ROOT), "rev-parse", "HEAD"])
    assert msgspec.convert(facts, Environment) == facts
    assert all(value not in ("", []) for value in facts.values())


def test_another_build_is_recorded_by_its_flags(tmp_path: Path) -> None:
    (tmp_path / "CMakeCache.txt").write_text(
        CACHE.replace("Release", "Debug").replace("RELEASE:STRING=-O3", "DEBUG:STRING=-g")
    )
    assert environment.describe_build("debug", tmp_path) == {"debug_build": "Debug: -g -DNDEBUG"}


def test_compilers_of_other_languages_are_recorded_where_they_are(experiment: Experiment, tmp_path: Path) -> None:
    (tmp_path / "CMakeCache.txt").write_text(CACHE + OTHERS.format(tmp_path))
    (tmp_path / "rustc").write_text("#!/bin/sh\necho rustc 1.85.0\necho more\n")
    (tmp_path / "rustc").chmod(0o755)
    facts = environment.collect(experiment, pinning.choose(), tmp_path)
    assert facts["rust"] == "rustc 1.85.0"
    assert "go" not in facts


def test_the_link_is_recorded_with_its_rate(experiment: Experiment, tmp_path: Path) -> None:
    lan = experiment.with_each(link="lan", link_rate="1gbit")
    assert environment.collect(lan, pinning.choose(), tmp_path)["link"] == "lan at 1gbit"


def test_a_folder_that_is_no_repository_says_so(experiment: Experiment, tmp_path: Path) -> None:
    facts = environment.collect(experiment, pinning.choose(), tmp_path, root=tmp_path)
    assert str(facts["git_commit"]).startswith("unknown (fatal: not a git repository")
    assert "libraries" not in facts


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give a tree away")
def test_the_commit_of_another_users_tree_is_read(tmp_path: Path) -> None:
    git = ["git", "-C", str(tmp_path), "-c", "user.name=a", "-c", "user.email=a@example.org"]
    for words in (["init", "--quiet"], ["commit", "--quiet", "--allow-empty", "-m", "one"]):
        subprocess.run([*git, *words], check=True)
    head = (tmp_path / ".git" / "refs" / "heads").rglob("*")
    (commit,) = [path.read_text().strip() for path in head if path.is_file()]
    for path in (tmp_path, tmp_path / ".git"):
        os.chown(path, 12345, 12345)
    refused = subprocess.run([*git, "status"], capture_output=True, text=True, check=False)
    assert "dubious ownership" in refused.stderr
    assert environment.read_commit(tmp_path) == {"git_commit": commit, "git_dirty": False}


def test_why_no_commit_is_known_is_gits_own_word(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / ".git").write_text("gitdir: /nowhere\n")
    assert environment.read_commit(tmp_path) == {"git_commit": "unknown (fatal: not a git repository: /nowhere)"}
    monkeypatch.setenv("PATH", str(tmp_path))
    assert environment.read_commit(tmp_path) == {"git_commit": "unknown (git is not installed)"}


def test_the_cmake_cache_is_read_past_comments_and_empty_values() -> None:
    cache = environment.parse_cmake_cache(CACHE)
    assert cache["CMAKE_CXX_COMPILER"] == "/usr/bin/c++"
    assert cache["CMAKE_CXX_FLAGS"] == ""


def test_only_boot_options_that_change_speed_are_kept() -> None:
    line = "BOOT_IMAGE=/vmlinuz root=UUID=1234 mitigations=off isolcpus=2,3 quiet nohz_full=2"
    assert environment.select_boot_options(line) == ["mitigations=off", "isolcpus=2,3", "nohz_full=2"]


def test_names_are_found_in_the_kernel_s_files() -> None:
    assert environment.parse_os_name('NAME="Debian"\nPRETTY_NAME="Debian GNU/Linux 12"\n') == "Debian GNU/Linux 12"
    assert environment.parse_cpu_model("processor\t: 0\nmodel name\t: AMD EPYC\n") == "AMD EPYC"
    assert environment.parse_cpu_model("CPU part : 0xd0c") == ""


def test_weaknesses_that_do_not_touch_this_cpu_are_left_out(tmp_path: Path) -> None:
    (tmp_path / "meltdown").write_text("Not affected\n")
    (tmp_path / "spectre_v2").write_text("Mitigation: Retpolines\n")
    assert environment.list_mitigations(tmp_path) == ["spectre_v2: Mitigation: Retpolines"]


def test_libraries_are_those_of_the_package_list(tmp_path: Path) -> None:
    packages = tmp_path / "debian.txt"
    packages.write_text("# C++\ng++\nno-such-package-dev\n")
    assert environment.list_libraries(packages) == ()
    assert all(" " in line for line in environment.list_libraries(ROOT / "packages" / "debian.txt"))
