"""What ./netdyno decides, with the real script and a system of fakes: no network, nothing installed."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.project.entry_tree import Tree, make_tree
from tests.support.patience import eventually

pytestmark = pytest.mark.timeout(60)  # a wait for an event that never comes

CLI_STATUS = 3
SET_UP = ["dpkg-query", "python venv", "python pip", "python pip_settings"]
CONFIGURE = "cmake --preset release --fresh"


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return make_tree(tmp_path)


def test_the_first_call_sets_up_configures_and_hands_over(tree: Tree) -> None:
    done = tree.run("run", "quick", "--json")
    assert done.returncode == CLI_STATUS
    assert tree.calls() == [*SET_UP, CONFIGURE, "cli run quick --json"]
    assert done.stdout == "the command's output; preset release\n"


def test_the_second_call_only_hands_over(tree: Tree) -> None:
    tree.run("run")
    tree.calls()
    done = tree.run("run")
    assert tree.calls() == ["cli run"]
    assert done.stderr == ""


def test_a_command_that_starts_no_program_configures_nothing(tree: Tree) -> None:
    tree.run("run")
    (tree.root / "build/release/build.ninja").unlink()
    tree.calls()
    lines = ("doctor", "report x", "chat x", "compare x y", "flips x y z --along connections", "claims x y")
    for line in (*lines, "--help", "run --help", ""):
        tree.run(*line.split())
        assert tree.calls() == [f"cli {line}".rstrip()]


def test_help_on_a_fresh_clone_installs_nothing(tree: Tree) -> None:
    for line in ("--help", "run --help", "help", ""):
        done = tree.run(*line.split())
        assert done.returncode == 0, line
        assert "./netdyno run" in done.stdout, line
        assert tree.calls() == [], line


@pytest.mark.parametrize("command", ["client", "load", "serve"])
def test_the_help_of_a_program_needs_the_program(tree: Tree, command: str) -> None:
    assert "./netdyno run" in tree.run(command, "--help").stdout
    tree.run("report")
    tree.calls()
    tree.run(command, "--help")
    tree.run(command, "--help")
    assert tree.calls() == [CONFIGURE, f"cli {command} --help", f"cli {command} --help"]


def test_help_is_there_also_when_something_has_changed_since(tree: Tree) -> None:
    tree.run("run")
    tree.edit("packages/debian.txt", "# changed\n")
    tree.calls()
    tree.run("--help")
    assert tree.calls() == ["cli --help"]


def test_the_doctor_on_a_fresh_clone_waits_for_no_build(tree: Tree) -> None:
    tree.run("doctor")
    assert tree.calls() == [*SET_UP, "cli doctor"]


def test_list_on_a_fresh_clone_configures_so_that_it_can_say_what_can_be_built(tree: Tree) -> None:
    tree.run("list")
    assert tree.calls() == [*SET_UP, CONFIGURE, "cli list"]


def test_the_generator_for_other_machines_has_a_build_of_its_own(tree: Tree) -> None:
    done = tree.run("install-load", "/there", NETDYNO_PRESET="asan")
    assert tree.calls() == [*SET_UP, "cmake --preset load --fresh", "cli install-load /there"]
    assert done.stdout == "the command's output; preset load\n"


def test_a_caller_that_names_a_build_has_one(tree: Tree) -> None:
    tree.run("run", NETDYNO_BUILD="/elsewhere")
    assert tree.calls() == [*SET_UP, "cli run"]


def test_python_keeps_what_it_has_compiled(tree: Tree) -> None:
    assert "not kept" not in tree.run("list", PYTHONDONTWRITEBYTECODE="1").stdout


def test_no_variable_of_the_shell_names_another_python_or_repository(tree: Tree) -> None:
    names = ("PYTHONPATH", "PYTHONHOME", "PYTHONOPTIMIZE", "GIT_DIR", "GIT_CONFIG_KEY_0", "GTEST_FILTER", "GITHUB_SHA")
    variables: dict[str, Any] = dict.fromkeys(names, "/elsewhere")
    tree.run("list", **variables)
    assert {name for name in names if name in tree.environment()} == {"GITHUB_SHA"}


def test_it_can_be_called_from_elsewhere_and_by_a_link(tree: Tree, tmp_path: Path) -> None:
    (tmp_path / "linked").symlink_to(tree.root / "netdyno")
    done = subprocess.run(
        [tmp_path / "linked", "list"],
        cwd="/",
        env={"PATH": str(tree.bin), "FAKES": str(tree.fakes), "NETDYNO_PYTHON": str(tree.bin / "python3")},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == CLI_STATUS
    assert (tree.root / "build/release/build.ninja").exists()


# --- packages -----------------------------------------------------------------------------------------------------


def test_root_installs_what_is_missing_without_sudo_and_says_so(tree: Tree) -> None:
    tree.have("cmake")
    done = tree.run("run")
    assert done.returncode == CLI_STATUS
    assert tree.calls()[:4] == ["dpkg-query", "apt-get update", "apt-get install g++ libboost1.81-dev", "dpkg-query"]
    assert "installing Debian packages: g++ libboost1.81-dev" in done.stderr


def test_a_user_installs_through_sudo(tree: Tree) -> None:
    tree.have("cmake", "libboost1.83-dev")
    tree.be_user(1000)
    assert tree.run("run").returncode == CLI_STATUS
    assert tree.calls()[:6] == ["dpkg-query", "sudo", "sudo", "apt-get update", "sudo", "apt-get install g++"]


def missing_without_rights(tree: Tree) -> subprocess.CompletedProcess[str]:
    tree.have("cmake")
    tree.be_user(1000)
    done = tree.run("run")
    assert done.returncode == 2
    assert "g++ libboost1.81-dev" in done.stderr
    assert "apt-get update && apt-get install -y --no-install-recommends g++ libboost1.81-dev" in done.stderr
    assert not any(call.startswith(("apt-get", "python", "cli")) for call in tree.calls())
    return done


def test_without_rights_and_without_sudo_the_error_names_packages_and_command(tree: Tree) -> None:
    tree.without("sudo")
    message = missing_without_rights(tree).stderr
    assert "no sudo" in message
    assert "NETDYNO_PACKAGES=skip" in message


def test_without_flock_nothing_claims_to_be_setting_up(tree: Tree) -> None:
    tree.without("flock")
    done = tree.run("list", "servers")
    assert done.returncode == 2
    assert "flock is missing" in done.stderr
    assert "another netdyno" not in done.stderr


def test_a_sudo_that_refuses_is_the_same_error(tree: Tree) -> None:
    tree.break_("sudo")
    assert "sudo gives you no rights" in missing_without_rights(tree).stderr


def test_a_failing_apt_is_a_clear_error_and_the_next_call_tries_again(tree: Tree) -> None:
    tree.have("cmake", "libboost1.81-dev")
    tree.break_("apt-get-install")
    done = tree.run("run")
    assert done.returncode == 2
    assert "apt-get could not install: g++" in done.stderr
    assert "E: no network" in done.stderr
    assert "apt-get install -y --no-install-recommends g++" in done.stderr
    assert "NETDYNO_PACKAGES=skip ./netdyno" in done.stderr
    log = Path(done.stderr.rsplit("The whole log: ", 1)[1].strip())
    assert "E: no network" in log.read_text()
    tree.repair("apt-get-install")
    assert tree.run("run").returncode == CLI_STATUS


def test_old_package_lists_are_good_enough_when_they_cannot_be_renewed(tree: Tree) -> None:
    tree.have("cmake", "libboost1.81-dev")
    tree.break_("apt-get-update")
    done = tree.run("run")
    assert done.returncode == CLI_STATUS
    assert "apt-get update failed" in done.stderr


@pytest.mark.parametrize(
    ("offered", "installed"),
    [
        (["libboost1.81-dev", "libboost1.83-dev"], "libboost1.81-dev"),
        (["libboost1.83-dev"], "libboost1.83-dev"),
    ],
)
def test_of_alternatives_the_first_that_the_distribution_has_is_installed(
    tree: Tree, offered: list[str], installed: str
) -> None:
    tree.have("cmake", "g++")
    tree.offer(*offered)
    tree.run("run")
    assert f"apt-get install {installed}" in tree.calls()


def test_any_installed_alternative_will_do(tree: Tree) -> None:
    tree.have("cmake", "g++", "libboost1.83-dev")
    assert tree.run("run").returncode == CLI_STATUS
    assert not any(call.startswith("apt-get") for call in tree.calls())


def test_where_no_alternative_is_offered_the_error_names_the_first(tree: Tree) -> None:
    tree.have("cmake", "g++")
    tree.offer()
    done = tree.run("run")
    assert done.returncode == 2
    assert "apt-get could not install: libboost1.81-dev" in done.stderr


def test_tests_need_more_packages_and_what_may_be_missing_is_stated(tree: Tree) -> None:
    tree.run("run")
    tree.offer("linter")
    tree.calls()
    done = tree.run("test")
    assert done.returncode == CLI_STATUS
    assert "apt-get install linter" in tree.calls()
    assert "that this distribution lacks: browser" in done.stderr
    tree.calls()
    assert tree.run("test").stderr == ""
    assert tree.calls() == ["cli test"]


@pytest.mark.parametrize("by_hand", [False, True])
def test_what_was_configured_without_the_libraries_of_the_tests_is_configured_with_them(
    tree: Tree, by_hand: bool
) -> None:
    tree.run("run")
    if by_hand:
        tree.have("cmake", "g++", "libboost1.81-dev", "browser", "linter")
    tree.calls()
    tree.run("test")
    assert tree.calls()[-2:] == [CONFIGURE, "cli test"]
    tree.run("run")
    assert tree.calls() == ["cli run"]


def test_a_system_that_can_test_can_run(tree: Tree) -> None:
    tree.run("test")
    tree.calls()
    tree.run("run")
    assert tree.calls() == ["cli run"]


# --- how far it is ------------------------------------------------------------------------------------------------


def apt_log(fetched: int = 0, unpacked: int = 0, ready: int = 0) -> str:
    """As apt-get writes it for four packages, one of them newer than the one that was there."""
    lines = ["Need to get 40 MB of archives.", "1 upgraded, 3 newly installed, 0 to remove and 9 not upgraded."]
    lines += [f"Get:{number} mirror/main amd64 p{number} [1 MB]" for number in range(fetched)]
    lines += [f"Unpacking p{number} (1.0) ..." for number in range(unpacked)]
    lines += [f"Setting up p{number} (1.0) ..." for number in range(ready)]
    return "\n".join(lines) + "\n"


def test_a_long_installation_says_how_far_it_is_also_on_a_pipe(tree: Tree) -> None:
    tree.have("cmake")
    reached, go = tree.hold("apt-get")
    log = tree.root / ".netdyno/logs/apt-install.log"
    with tree.seconds() as pass_by:
        process = tree.start("run")
        assert process.stderr is not None
        assert reached.read_text() == "half\n"
        assert "asking apt" in process.stderr.readline()
        assert "installing Debian packages: g++" in process.stderr.readline()
        log.write_text(apt_log(fetched=2))
        pass_by(10)
        says = "netdyno: installing Debian packages, "
        assert process.stderr.readline() == f"{says}0:10 so far: 16%, downloading 2 of 4 packages\n"
        log.write_text(apt_log(fetched=4, unpacked=2))
        pass_by(1)
        assert process.stderr.readline() == f"{says}0:11 so far: 50%, unpacking 2 of 4 packages\n"
        pass_by(30)
        assert process.stderr.readline() == f"{says}0:41 so far: 50%, unpacking 2 of 4 packages\n"
        log.write_text(apt_log(fetched=4, unpacked=4, ready=3))
        pass_by(1)
        assert process.stderr.readline() == f"{says}0:42 so far: 91%, setting up 3 of 4 packages\n"
        go.write_text("go\n")
    assert process.wait(timeout=60) == CLI_STATUS
    assert "so far" not in process.communicate()[1]


def wait_until_alone(process: subprocess.Popen[str], step: str) -> None:
    """Wait until the Python steps, beside which CMake configures, are done."""
    assert process.stderr is not None
    if step == "cmake":
        assert any("set-up 3/3" in line for line in iter(process.stderr.readline, ""))


@pytest.mark.parametrize(("step", "says"), [("uv", "installing Python packages"), ("cmake", "configuring")])
def test_a_long_step_without_figures_shows_its_last_line(tree: Tree, step: str, says: str) -> None:
    reached, go = tree.hold(step)
    with tree.seconds() as pass_by:
        process = tree.start("run")
        assert process.stderr is not None
        assert reached.read_text() == "half\n"
        wait_until_alone(process, step)
        name = {"uv": "python", "cmake": "configure-release"}[step]
        (tree.root / f".netdyno/logs/{name}.log").write_text("first\nsecond\n\n")
        pass_by(40)
        lines = iter(process.stderr.readline, "")
        reports = [next(line for line in lines if "so far" in line) for _ in range(2)]
        assert reports == [f"netdyno: {says}, {time} so far: second\n" for time in ("0:10", "0:40")]
        go.write_text("go\n")
    process.communicate(timeout=60)


def test_a_user_without_rights_goes_on_without_what_may_be_missing(tree: Tree) -> None:
    tree.have("cmake", "g++", "libboost1.81-dev", "linter")
    tree.offer()
    tree.be_user(1000)
    tree.without("sudo")
    done = tree.run("test")
    assert done.returncode == CLI_STATUS
    assert "that this distribution lacks: browser" in done.stderr


def test_a_system_that_is_not_debian_reads_how_to_go_on(tree: Tree) -> None:
    tree.without("dpkg-query")
    done = tree.run("run")
    assert done.returncode == 2
    assert "NETDYNO_PACKAGES=skip" in done.stderr
    assert tree.run("run", NETDYNO_PACKAGES="skip").returncode == CLI_STATUS


@pytest.mark.parametrize(
    ("tools", "command", "there"),
    [
        (("rpm", "dnf"), "dnf install gcc-c++ boost-devel", ("cmake", "gcc-c++", "boost-devel")),
        (("pacman",), "pacman -S --needed gcc boost", ("cmake", "gcc", "boost")),
    ],
)
def test_fedora_and_arch_see_their_own_names_and_go_on_when_all_is_there(
    tree: Tree, tools: tuple[str, ...], command: str, there: tuple[str, ...]
) -> None:
    tree.without("dpkg-query")
    tree.be_of(*tools)
    tree.have("cmake")
    done = tree.run("run")
    assert done.returncode == 2
    assert command in done.stderr
    tree.have(*there)
    assert tree.run("run").returncode == CLI_STATUS


def test_a_package_cannot_keep_the_lock(tree: Tree) -> None:
    tree.have("cmake")
    tree.run("run")
    assert "apt-get was given the lock" not in tree.calls()


# --- what makes a set-up old --------------------------------------------------------------------------------------


def test_a_changed_file_brings_back_its_own_step(tree: Tree) -> None:
    tree.run("run")
    tree.calls()
    for changed, calls in {
        "packages/debian.txt": ["dpkg-query", CONFIGURE],
        "packages/set-up.sh": ["dpkg-query", CONFIGURE],
        "netdyno": ["dpkg-query", CONFIGURE],
        "requirements.lock": ["dpkg-query", "python pip", "python pip_settings", CONFIGURE],
        "CMakePresets.json": [CONFIGURE],
    }.items():
        tree.edit(changed, "# changed\n")
        tree.run("run")
        assert tree.calls() == [*calls, "cli run"], changed


def test_a_deleted_environment_or_build_is_recreated(tree: Tree) -> None:
    tree.run("run")
    tree.calls()
    (tree.root / "build/release/build.ninja").unlink()
    (tree.root / ".venv/bin/python").unlink()
    tree.run("run")
    assert tree.calls() == [*SET_UP, CONFIGURE, "cli run"]


def test_uv_itself_is_installed_from_the_lock(tree: Tree) -> None:
    tree.run("run")
    expected = "uv==1.0.0 \\\n    --hash=sha256:bb \\\n    --hash=sha256:cc\n"
    assert (tree.fakes / "uv.lock").read_text() == expected


# --- failures and interruptions -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("broken", "says"),
    [
        ("venv", "python3-venv"),
        ("pip", "pip could not install uv"),
        ("pip_settings", "requirements.lock"),
        ("cmake--preset", "CMake could not configure"),
        ("old-python", "older than Python 3.11"),
    ],
)
def test_a_failed_step_says_what_to_do_and_is_done_again(tree: Tree, broken: str, says: str) -> None:
    tree.break_(broken)
    done = tree.run("run")
    assert done.returncode == 2
    assert says in done.stderr
    assert "cli run" not in tree.calls()
    tree.repair(broken)
    assert tree.run("run").returncode == CLI_STATUS


@pytest.mark.parametrize(
    ("broken", "why"),
    [
        ("venv", "  OSError: [Errno 30] Read-only file system: '/home/ada'"),
        ("pip", "ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device"),
        ("pip_settings", "error: failed to create directory `/home/ada/.cache/uv`: Permission denied (os error 13)"),
    ],
)
def test_a_step_that_could_not_write_says_that_and_nothing_of_the_network(tree: Tree, broken: str, why: str) -> None:
    tree.break_(broken, f"Collecting uv\n{why}\n")
    done = tree.run("run")
    assert done.returncode == 2
    assert f"It could not write, and says:  {why.strip()}" in done.stderr
    assert "proxy" not in done.stderr
    assert "python3-venv" not in done.stderr


@pytest.mark.parametrize("broken", ["pip", "pip_settings"])
def test_what_is_to_be_run_by_hand_can_be_pasted(tmp_path: Path, broken: str) -> None:
    """Also from a place with a blank and a quote in its name."""
    tree = make_tree(tmp_path / "ada's place")
    tree.break_(broken)
    done = tree.run("run")
    (line,) = (line for line in done.stderr.splitlines() if "By hand:" in line)
    words = shlex.split(line.partition("By hand:")[2])
    paths = [word for word in words if "ada" in word]
    assert len(paths) == (2 if broken == "pip" else 3)
    assert all(Path(path).parent.is_dir() for path in paths)
    assert "no network" in done.stderr
    assert "index" in done.stderr


@pytest.mark.parametrize("home", ["none", "missing", "a file"])
def test_without_a_home_that_can_be_written_caches_are_kept_in_the_tree(tree: Tree, tmp_path: Path, home: str) -> None:
    """A folder that is not there, for root may write to every one that is."""
    (tmp_path / "a file").touch()
    place, named = str(tmp_path / home / "home"), "/named/by/the/user"
    if home == "none":
        tree.run("run", UV_CACHE_DIR=named)
    else:
        tree.run("run", HOME=place, UV_CACHE_DIR=named)
    given = tree.environment()
    names = ["XDG_CACHE_HOME", "MPLCONFIGDIR", "PIP_CACHE_DIR", "GOCACHE", "GOPATH", "CCACHE_DIR", "npm_config_cache"]
    assert [name for name in names if not given.get(name, "").startswith(f"{tree.root}/.netdyno/cache")] == []
    assert given["UV_CACHE_DIR"] == named


@pytest.mark.parametrize("there", ["", ".cache"])
def test_with_a_home_caches_are_where_tools_keep_them(tree: Tree, tmp_path: Path, there: str) -> None:
    (tmp_path / "home" / there).mkdir(parents=True)
    tree.run("run", HOME=str(tmp_path / "home"))
    assert {"XDG_CACHE_HOME", "MPLCONFIGDIR", "UV_CACHE_DIR"}.isdisjoint(tree.environment())


@pytest.mark.parametrize("step", ["apt-get", "uv", "cmake"])
def test_a_set_up_killed_in_the_middle_is_made_good_by_the_next_call(tree: Tree, step: str) -> None:
    tree.have("cmake", "libboost1.81-dev")
    reached, go = tree.hold(step)
    process = tree.start("run")
    assert reached.read_text() == "half\n"
    wait_until_alone(process, step)
    os.killpg(process.pid, signal.SIGKILL)
    if step == "cmake":  # in a session of its own, it goes on to its end
        go.write_text("go\n")
    process.communicate(timeout=60)
    tree.hold_no_more()
    tree.calls()
    assert tree.run("run").returncode == CLI_STATUS
    done = tree.calls()
    assert done[-2:] == [CONFIGURE, "cli run"]
    assert ("apt-get install g++" in done) == (step == "apt-get")
    assert ("python pip_settings" in done) == (step != "cmake")
    tree.run("run")
    assert tree.calls() == ["cli run"]


def test_the_build_is_configured_while_python_is_set_up(tree: Tree) -> None:
    reached, go = tree.hold("uv")
    process = tree.start("run")
    assert reached.read_text() == "half\n"
    eventually(lambda: CONFIGURE in (tree.fakes / "calls").read_text(), "CMake was not called")
    go.write_text("go\n")
    process.communicate(timeout=60)
    assert process.returncode == CLI_STATUS


def test_configuring_ends_with_the_set_up_that_began_it(tree: Tree) -> None:
    """Left to itself, it would keep the lock of the next call."""
    reached, _ = tree.hold("cmake")
    process = tree.start("run")
    assert reached.read_text() == "half\n"
    wait_until_alone(process, "cmake")
    process.terminate()
    process.communicate(timeout=60)
    assert process.returncode == 128 + signal.SIGTERM
    tree.hold_no_more()
    assert tree.run("run").returncode == CLI_STATUS


def test_of_two_first_calls_one_sets_up_and_the_other_waits(tree: Tree) -> None:
    reached, go = tree.hold("uv")
    first = tree.start("run", "first")
    assert reached.read_text() == "half\n"
    second = tree.start("run", "second")
    assert second.stderr is not None
    assert "waiting for it" in second.stderr.readline()
    go.write_text("go\n")
    assert first.wait(timeout=60) == CLI_STATUS
    assert second.wait(timeout=60) == CLI_STATUS
    first.communicate()
    second.communicate()
    calls = tree.calls()
    assert [calls.count(call) for call in (*SET_UP, CONFIGURE)] == [1, 1, 1, 1, 1]


def test_a_tree_that_cannot_be_written_is_a_clear_error(tree: Tree) -> None:
    (tree.root / ".netdyno").write_text("in the way\n")
    done = tree.run("run")
    assert done.returncode == 2
    assert f"cannot write to {tree.root}/.netdyno" in done.stderr


# --- presets ------------------------------------------------------------------------------------------------------


def test_another_preset_is_built_beside_the_measured_one(tree: Tree) -> None:
    done = tree.run("serve", "x", NETDYNO_PRESET="asan")
    assert tree.calls()[-2:] == ["cmake --preset asan --fresh", "cli serve x"]
    assert done.stdout == "the command's output; preset asan\n"


@pytest.mark.parametrize("command", ["run", "resume"])
def test_only_the_release_build_is_measured(tree: Tree, command: str) -> None:
    done = tree.run(command, NETDYNO_PRESET="asan")
    assert done.returncode == 2
    assert "only the release build is measured" in done.stderr
    assert tree.calls() == []


def test_a_preset_name_is_no_path(tree: Tree) -> None:
    done = tree.run("serve", NETDYNO_PRESET="../x")
    assert done.returncode == 2
    assert "which is no preset" in done.stderr


def test_an_environment_behind_a_link_is_left_alone(tree: Tree, tmp_path: Path) -> None:
    elsewhere = tmp_path / "theirs"
    elsewhere.mkdir()
    (elsewhere / "precious").touch()
    (tree.root / ".venv").symlink_to(elsewhere)
    done = tree.run("run")
    assert done.returncode == 2
    assert ".venv is a link" in done.stderr
    assert f"rm {tree.root}/.venv" in done.stderr
    assert [path.name for path in elsewhere.iterdir()] == ["precious"]


def test_the_environment_of_another_checkout_is_left_to_it(tree: Tree, tmp_path: Path) -> None:
    tree.run("run")
    theirs = (tree.root / ".venv").rename(tmp_path / "theirs")
    (tree.root / ".venv").symlink_to(theirs)
    stamp = (theirs / "netdyno.stamp").read_text()
    (tree.root / "requirements.lock").write_text("another==1\n")
    done = tree.run("run")
    assert done.returncode == 2
    assert ".venv is a link" in done.stderr
    assert (theirs / "netdyno.stamp").read_text() == stamp
