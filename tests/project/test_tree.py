"""What holds for the tree itself: the package list, the lock, the scripts, and what no file may name."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest

pytestmark = pytest.mark.quick

ROOT = Path(__file__).resolve().parents[2]
PLATFORMS = sorted(str(path.relative_to(ROOT)) for path in (ROOT / "tests" / "platforms").iterdir())
OF_PACKAGES = sorted(
    str(path.relative_to(ROOT)) for pattern in ("packages/*/*.sh", "servers/*/run.sh") for path in ROOT.glob(pattern)
)
SCRIPTS = ("netdyno", "packages/set-up.sh", ".ci/run", *PLATFORMS, *OF_PACKAGES)

# Split, so that this file does not name them. A mirror or a proxy must be able to take the place of each.
REGISTRY_HOSTS = tuple(
    "".join(parts)
    for parts in (
        ("pyp", "i.org"),
        ("python", "hosted.org"),
        ("registry.npm", "js.org"),
        ("crates", ".io"),
        ("proxy.go", "lang.org"),
        ("conan", ".io"),
        ("deb.deb", "ian.org"),
        ("archive.ubu", "ntu.com"),
    )
)


def committed_files() -> list[Path]:
    """All files of the tree that git does not ignore. Outside a clone (an unpacked archive) there is no such list."""
    if not (ROOT / ".git").exists():
        pytest.skip("not a git clone, so which files are committed is not known")
    listed = subprocess.run(
        ["git", "-c", "safe.directory=*", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    return [path for name in listed.split("\0") if name and (path := ROOT / name).is_file()]


def test_no_file_names_the_host_of_a_package_registry() -> None:
    named = [
        f"{path.relative_to(ROOT)}: {host}"
        for path in committed_files()
        for host in REGISTRY_HOSTS
        if host.encode() in path.read_bytes()
    ]
    assert named == []


RECORD = re.compile(rb"(?<![0-9a-f]{8}:docs/)\b(?:adr|measurements)/[a-z-]+\.md\b")


def test_records_and_measurements_that_a_file_names_are_there() -> None:
    named = {path: RECORD.findall(path.read_bytes()) for path in committed_files()}
    gone = [
        f"{path.relative_to(ROOT)}: {page.decode()}"
        for path, pages in named.items()
        for page in pages
        if not (ROOT / "docs" / page.decode()).is_file()
    ]
    assert gone == []


def package_lines() -> list[list[str]]:
    """The groups of packages/debian.txt (separated by blank lines), comments removed."""
    text = (ROOT / "packages" / "debian.txt").read_text()
    groups = [[line.partition("#")[0].strip() for line in group.splitlines()] for group in text.split("\n\n")]
    return [lines for group in groups if (lines := [line for line in group if line])]


def test_the_package_list_is_well_formed() -> None:
    line_form = re.compile(r"(test: )?[a-z0-9][a-z0-9+.-]+( \| [a-z0-9][a-z0-9+.-]+)*")
    for group in package_lines():
        assert [line for line in group if not line_form.fullmatch(line)] == []
        assert group == sorted(group)
    names = [
        name
        for group in package_lines()
        for line in group
        for name in line.removeprefix("test: ").split(" | ")
        if name != "none"
    ]
    assert len(names) == len(set(names))


def test_every_package_has_its_names_on_other_systems() -> None:
    rows = [
        line.split()
        for line in (ROOT / "packages" / "elsewhere.txt").read_text().splitlines()
        if line and not line.startswith("#")
    ]
    first = [line.removeprefix("test: ").split(" | ")[0] for group in package_lines() for line in group]
    assert sorted(row[0] for row in rows) == sorted(first)
    assert [row for row in rows if len(row) != 3] == []


def test_none_is_only_ever_the_last_alternative() -> None:
    for line in (line for group in package_lines() for line in group):
        assert "none" not in line.removeprefix("test: ").split(" | ")[:-1]


def test_libraries_that_a_build_asks_for_are_on_the_package_list() -> None:
    """A skip names no package that is in no release any more."""
    listed = {name for group in package_lines() for line in group for name in re.split(r"[ |:]+", line)}
    sources = [*(ROOT / "cmake").rglob("*.cmake"), ROOT / "loadgen" / "plan" / "built_with.cpp"]
    named = {name for path in sources for name in re.findall(r"\b[a-z][a-z0-9.+-]*-dev\b", path.read_text())}
    assert "libboost-dev" in named
    assert named - listed == set()


def test_the_container_is_made_by_steps_that_are_taken_in_a_chroot_too() -> None:
    """tests/platforms/in-chroot follows them; an engine's other instructions are unknown there."""
    lines = (ROOT / "Containerfile").read_text().splitlines()
    steps = {line.partition(" ")[0] for line in lines if line and not line.startswith("#")}
    assert steps == {"FROM", "RUN", "USER", "WORKDIR", "COPY", "ENTRYPOINT", "CMD"}
    assert not [line for line in lines if line.endswith("\\")]


def locked() -> dict[str, str]:
    """Each requirement of the lock (name and version) with its block of lines."""
    blocks = re.split(r"^(?=[a-z0-9])", (ROOT / "requirements.lock").read_text(), flags=re.MULTILINE)[1:]
    return {block.split(maxsplit=1)[0]: block for block in blocks}


def test_every_locked_package_has_a_version_and_hashes() -> None:
    for requirement, block in locked().items():
        assert "==" in requirement
        assert "--hash=sha256:" in block, requirement


def test_the_lock_has_all_that_the_project_asks_for() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    requirements = [
        *project["project"]["dependencies"],
        *(name for group in project["dependency-groups"].values() for name in group),
    ]
    names = {requirement.partition("==")[0] for requirement in locked()}
    assert [name for name in requirements if re.split(r"[<>=!~;\[ ]", name)[0].lower() not in names] == []


def test_each_package_that_is_installed_with_the_harness_is_imported_by_it() -> None:
    """One that only tests import is of the group `dev`: a wheel does not ask for it."""
    sources = "\n".join(path.read_text() for path in (ROOT / "python").rglob("*.py"))
    imported = set(re.findall(r"^ *(?:(?:from|import) |.*import_module\(\")(\w+)", sources, re.MULTILINE))
    dependencies = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    assert [name for name in dependencies if name.replace("-", "_") not in imported] == []


@pytest.mark.parametrize("script", SCRIPTS)
def test_scripts_pass_shellcheck(script: str) -> None:
    shellcheck = shutil.which("shellcheck")
    if shellcheck is None:
        pytest.skip("shellcheck is not installed (package shellcheck)")
    checked = subprocess.run([shellcheck, "-x", script], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (checked.returncode, checked.stdout) == (0, ""), checked.stderr


def test_the_entry_is_plain_posix_shell() -> None:
    for script in ("netdyno", "packages/set-up.sh"):
        subprocess.run(["dash", "-n", script], cwd=ROOT, check=True)
    assert (ROOT / "netdyno").read_text().startswith("#!/bin/sh\n")


# --- editors ------------------------------------------------------------------------------------------------------


def presets() -> set[str]:
    described = json.loads((ROOT / "CMakePresets.json").read_text())
    return {preset["name"] for preset in described["configurePresets"] if not preset.get("hidden")}


def test_editor_entries_name_presets_tasks_and_inputs_that_exist() -> None:
    launch = json.loads((ROOT / ".vscode" / "launch.json").read_text())
    tasks = {task["label"]: task for task in json.loads((ROOT / ".vscode" / "tasks.json").read_text())["tasks"]}
    inputs = {entry["id"] for entry in launch["inputs"]}
    entries = {entry["name"]: entry for entry in launch["configurations"]}
    used = re.findall(r"\$\{input:([a-z]+)\}", json.dumps(launch["configurations"]))
    assert set(used) == inputs
    for entry in entries.values():
        assert entry.get("preLaunchTask", "test") in tasks
        assert entry.get("serverReadyAction", {}).get("name", entry["name"]) in entries
    built = re.findall(r"build/([a-z]+)/", json.dumps(launch)) + re.findall(r"--preset ([a-z]+)", json.dumps(tasks))
    assert set(built) <= presets()
