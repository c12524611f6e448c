"""The environment of a run, recorded with it: machine, kernel, limits, compiler, libraries, commit, link, pinning.

Every reader returns "" or leaves its key out where the machine does not show it; nothing is guessed."""

from __future__ import annotations

import functools
import os
import platform
import re
import resource
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from netdyno.kit import git, quantities
from netdyno.kit.files import read_if_there
from netdyno.kit.paths import IS_INSTALLED, ROOT
from netdyno.kit.version import VERSION
from netdyno.measure.machine import program_settings, topology
from netdyno.measure.machine.program_settings import format_limit
from netdyno.model import levels
from netdyno.model.experiment import Experiment
from netdyno.model.observation import Pinning
from netdyno.model.run import Environment

_SYS = Path("/sys/devices/system")
_CPU = _SYS / "cpu"

BOOT_OPTIONS = (
    "mitigations",
    "isolcpus",
    "nohz",
    "rcu_nocbs",
    "nosmt",
    "maxcpus",
    "preempt",
    "idle=",
    "cpuidle",
    "intel_idle",
    "intel_pstate",
    "amd_pstate",
    "processor.max_cstate",
    "transparent_hugepage",
    "clocksource",
    "tsc",
    "spectre",
    "spec_",
    "pti",
    "nopti",
)

SYSCTLS = (
    "net.core.somaxconn",
    "net.core.netdev_max_backlog",
    "net.core.rmem_max",
    "net.core.wmem_max",
    "net.core.rmem_default",
    "net.core.wmem_default",
    "net.core.busy_poll",
    "net.core.busy_read",
    "net.ipv4.tcp_max_syn_backlog",
    "net.ipv4.tcp_syncookies",
    "net.ipv4.tcp_abort_on_overflow",
    "net.ipv4.tcp_rmem",
    "net.ipv4.tcp_wmem",
    "net.ipv4.tcp_congestion_control",
    "net.ipv4.tcp_tw_reuse",
    "net.ipv4.tcp_autocorking",
    "net.ipv4.udp_mem",
    "net.ipv4.udp_rmem_min",
    "net.ipv4.ip_local_port_range",
    "kernel.sched_autogroup_enabled",
    "kernel.numa_balancing",
    "kernel.threads-max",
    "vm.overcommit_memory",
)


def collect(experiment: Experiment, pinning: Pinning, build: Path, root: Path = ROOT) -> Environment:
    """Read the environment of a run, as flat JSON."""
    return describe_machine(build, root) | describe_run(experiment, pinning)


def describe_machine(build: Path, root: Path = ROOT) -> Environment:
    """Describe the machine, whatever is run on it."""
    described: Environment = {
        **_read_machine(),
        **_read_limits(),
        **program_settings.choose().describe(),
        **{f"sysctl.{name}": value for name in SYSCTLS if (value := read_sysctl(name))},
        **_read_toolchain(build),
        "netdyno": VERSION,
        **read_commit(root),
        "libraries": list(list_libraries(root / "packages" / "debian.txt")),
        "python": platform.python_version(),
    }
    return {key: value for key, value in described.items() if value not in ("", [])}


def describe_run(experiment: Experiment, pinning: Pinning) -> Environment:
    """Describe the links and the pinning of a run. Pure."""
    described: Environment = {
        "link": quantities.listed(levels.links(experiment)),
        "pinning.server": ",".join(map(str, pinning.server)) or "none",
        "pinning.generator": ",".join(map(str, pinning.generator)) or "none",
        "pinning.harness": ",".join(map(str, pinning.harness)),
        "pinning.note": pinning.note,
    }
    return {key: value for key, value in described.items() if value not in ("", [])}


def _read_machine() -> Environment:
    cpuinfo = read_if_there(Path("/proc/cpuinfo"))
    return {
        "kernel": platform.release(),
        "kernel_version": platform.version(),
        "kernel_command_line": select_boot_options(read_if_there(Path("/proc/cmdline"))),
        "system": parse_os_name(read_if_there(Path("/etc/os-release"))),
        "architecture": platform.machine(),
        "cpu_model": parse_cpu_model(cpuinfo),
        "cpu_hypervisor": " hypervisor" in cpuinfo,
        "cores_online": os.cpu_count() or 0,
        "cores_allowed": len(os.sched_getaffinity(0)),
        "smt": read_if_there(_CPU / "smt" / "control"),
        "governor": read_if_there(_CPU / "cpu0/cpufreq/scaling_governor")
        or "none (the kernel has no frequency control here)",
        "boost": read_if_there(_CPU / "cpufreq/boost"),
        "clocksource": read_if_there(_SYS / "clocksource/clocksource0/current_clocksource"),
        "mitigations": list_mitigations(_CPU / "vulnerabilities"),
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "load_average_1min": os.getloadavg()[0],
    }


def select_boot_options(command_line: str) -> list[str]:
    """Return the words of the kernel's command line that change speed. The rest (serial numbers, addresses, names of
    disks) is private, and reports are passed on."""
    return [word for word in command_line.split() if word.startswith(BOOT_OPTIONS)]


def _read_limits() -> Environment:
    limits: Environment = {}
    for name in ("NOFILE", "NPROC", "MEMLOCK", "STACK"):
        soft, hard = resource.getrlimit(getattr(resource, f"RLIMIT_{name}"))
        limits[f"limit.{name.lower()}"] = f"{format_limit(soft)} (hard {format_limit(hard)})"
    quota = topology.read().quota
    limits["limit.cpu_quota_cores"] = "" if quota is None else quota
    return limits


def read_sysctl(name: str) -> str:
    """Read a sysctl's value, blanks single; empty where this kernel does not have it."""
    return " ".join(read_if_there(Path("/proc/sys") / name.replace(".", "/")).split())


def parse_os_name(os_release: str) -> str:
    """Return PRETTY_NAME of os-release(5)."""
    match = re.search(r'^PRETTY_NAME="?([^"\n]*)"?$', os_release, re.MULTILINE)
    return match[1] if match else ""


def parse_cpu_model(cpuinfo: str) -> str:
    """Return the first "model name" of /proc/cpuinfo (ARM has none)."""
    match = re.search(r"^model name\s*:\s*(.*)$", cpuinfo, re.MULTILINE)
    return match[1].strip() if match else ""


def list_mitigations(folder: Path) -> list[str]:
    """List the kernel's text on each weakness that affects this CPU."""
    weaknesses = [(path.name, read_if_there(path)) for path in sorted(folder.glob("*"))]
    return [f"{name}: {text}" for name, text in weaknesses if text and text != "Not affected"]


def _read_toolchain(build: Path) -> Environment:
    cache = parse_cmake_cache(read_if_there(build / "CMakeCache.txt"))
    compiler = cache.get("CMAKE_CXX_COMPILER", "")
    build_type = cache.get("CMAKE_BUILD_TYPE", "")
    flags = (cache.get("CMAKE_CXX_FLAGS", ""), cache.get(f"CMAKE_CXX_FLAGS_{build_type.upper()}", ""))
    linker_flags = (
        cache.get("CMAKE_EXE_LINKER_FLAGS", ""),
        cache.get(f"CMAKE_EXE_LINKER_FLAGS_{build_type.upper()}", ""),
    )
    return {
        "build": str(build),
        "build_type": build_type,
        "compiler": _ask_version(compiler, "--version"),
        "compiler_flags": " ".join(" ".join(flags).split()),
        "linker_flags": " ".join(" ".join(linker_flags).split()),
        "build_environment": cache.get("NETDYNO_BUILD_ENVIRONMENT", ""),
        "rust": _ask_version(cache.get("NETDYNO_RUSTC", ""), "--version"),
        "go": _ask_version(cache.get("NETDYNO_GO", ""), "version"),
        "java": _ask_version(cache.get("NETDYNO_JAVA", ""), "--version"),
        "erlang": cache.get("NETDYNO_ERLANG_VERSION", ""),
        "interprocedural_optimization": cache.get("CMAKE_INTERPROCEDURAL_OPTIMIZATION", ""),
        "libc": " ".join(platform.libc_ver()).strip(),
    }


def describe_build(level: str, build: Path) -> Environment:
    """Describe how the programs of a level of `build` were compiled, where cells start such."""
    toolchain = _read_toolchain(build)
    return {f"{level}_build": f"{toolchain['build_type']}: {toolchain['compiler_flags']}"}


@functools.cache
def _ask_version(program: str, question: str) -> str:
    """Return the first line of a program's answer; empty where there is none."""
    return _read_output([program, question]).partition("\n")[0] if program else ""


def parse_cmake_cache(text: str) -> dict[str, str]:
    """Parse the NAME:TYPE=VALUE lines of a CMakeCache.txt. Pure."""
    return dict(re.findall(r"^([A-Za-z_]\w*):\w+=(.*)$", text, re.MULTILINE))


@functools.cache
def list_libraries(package_list: Path) -> tuple[str, ...]:
    """Return the installed versions of the C++ libraries on the project's package list (Debian and Ubuntu)."""
    names = [line.split("#")[0].strip() for line in read_if_there(package_list).splitlines()]
    packages = [name for name in names if name.endswith("-dev")]
    if not packages:
        return ()
    listed = _read_output(["dpkg-query", "-W", "-f", "${db:Status-Abbrev}|${Package} ${Version}\n", *packages])
    return tuple(line.split("|", 1)[1] for line in listed.splitlines() if line.startswith("ii"))


def read_commit(root: Path = ROOT) -> Environment:
    """Return the commit of this tree, and whether it was changed since; where it cannot be read, git's own reason.
    A wheel has a file with that of its build."""
    if IS_INSTALLED:
        return {"git_commit": read_if_there(root / "commit")}
    if shutil.which("git") is None:
        return {"git_commit": "unknown (git is not installed)"}
    try:
        done, status = (
            git.run_git(root, *words, timeout_s=5) for words in (("rev-parse", "HEAD"), ("status", "--porcelain"))
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return {"git_commit": f"unknown ({error})"}
    if done.returncode != 0:
        first = next(iter(done.stderr.strip().splitlines()), f"git ended with exit code {done.returncode}")
        return {"git_commit": f"unknown ({first})"}
    return {"git_commit": done.stdout.strip(), "git_dirty": bool(status.stdout.strip())}


def _read_output(command: Sequence[str]) -> str:
    """Run a program and return its stdout; empty where it is not installed, fails or takes longer than 5 s."""
    if shutil.which(command[0]) is None:
        return ""
    try:
        # dpkg-query exits with 1 when one of several packages is unknown, and still lists the others
        done = subprocess.run(command, capture_output=True, text=True, timeout=5, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip()
