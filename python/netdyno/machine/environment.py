"""What a run depended on, recorded with it: machine, kernel, limits, compiler, libraries, commit, link, pinning.

Every reader answers "" or leaves its key out where the machine does not tell; nothing is guessed."""

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

from netdyno.base import quantities
from netdyno.base.paths import ROOT
from netdyno.machine import program_settings, topology
from netdyno.machine.program_settings import said
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
    """Everything of DESIGN rule 10, as flat JSON."""
    return of_machine(build, root) | of_run(experiment, pinning)


def of_machine(build: Path, root: Path = ROOT) -> Environment:
    """What a machine is, whatever is run on it."""
    found: Environment = {
        **_machine(),
        **_limits(),
        **program_settings.choose().described(),
        **{f"sysctl.{name}": value for name in SYSCTLS if (value := sysctl(name))},
        **_toolchain(build),
        **commit(root),
        "libraries": list(libraries(root / "packages" / "debian.txt")),
        "python": platform.python_version(),
    }
    return {key: value for key, value in found.items() if value not in ("", [])}


def of_run(experiment: Experiment, pinning: Pinning) -> Environment:
    """What a run makes of it. Pure."""
    found: Environment = {
        "link": quantities.listed(levels.links(experiment)),
        "pinning.server": ",".join(map(str, pinning.server)) or "none",
        "pinning.generator": ",".join(map(str, pinning.generator)) or "none",
        "pinning.harness": ",".join(map(str, pinning.harness)),
        "pinning.note": pinning.note,
    }
    return {key: value for key, value in found.items() if value not in ("", [])}


def _machine() -> Environment:
    cpuinfo = _text(Path("/proc/cpuinfo"))
    return {
        "kernel": platform.release(),
        "kernel_version": platform.version(),
        "kernel_command_line": boot_options(_text(Path("/proc/cmdline"))),
        "system": os_name(_text(Path("/etc/os-release"))),
        "architecture": platform.machine(),
        "cpu_model": cpu_model(cpuinfo),
        "cpu_hypervisor": " hypervisor" in cpuinfo,
        "cores_online": os.cpu_count() or 0,
        "cores_allowed": len(os.sched_getaffinity(0)),
        "smt": _text(_CPU / "smt" / "control"),
        "governor": _text(_CPU / "cpu0/cpufreq/scaling_governor") or "none (the kernel has no frequency control here)",
        "boost": _text(_CPU / "cpufreq/boost"),
        "clocksource": _text(_SYS / "clocksource/clocksource0/current_clocksource"),
        "mitigations": mitigations(_CPU / "vulnerabilities"),
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "load_average_1min": os.getloadavg()[0],
    }


def boot_options(command_line: str) -> list[str]:
    """The words of the kernel's command line that change speed. The rest (serial numbers, addresses, names of disks)
    is nobody's business, and reports are passed on."""
    return [word for word in command_line.split() if word.startswith(BOOT_OPTIONS)]


def _limits() -> Environment:
    limits: Environment = {}
    for name in ("NOFILE", "NPROC", "MEMLOCK", "STACK"):
        soft, hard = resource.getrlimit(getattr(resource, f"RLIMIT_{name}"))
        limits[f"limit.{name.lower()}"] = f"{said(soft)} (hard {said(hard)})"
    quota = topology.read().quota
    limits["limit.cpu_quota_cores"] = "" if quota is None else quota
    return limits


def sysctl(name: str) -> str:
    """A sysctl's value, blanks single; empty where this kernel does not have it."""
    return " ".join(_text(Path("/proc/sys") / name.replace(".", "/")).split())


def os_name(os_release: str) -> str:
    """PRETTY_NAME of os-release(5)."""
    match = re.search(r'^PRETTY_NAME="?([^"\n]*)"?$', os_release, re.MULTILINE)
    return match[1] if match else ""


def cpu_model(cpuinfo: str) -> str:
    """The first "model name" of /proc/cpuinfo (ARM has none)."""
    match = re.search(r"^model name\s*:\s*(.*)$", cpuinfo, re.MULTILINE)
    return match[1].strip() if match else ""


def mitigations(folder: Path) -> list[str]:
    """What the kernel says about each weakness that touches this CPU."""
    told = [(path.name, _text(path)) for path in sorted(folder.glob("*"))]
    return [f"{name}: {text}" for name, text in told if text and text != "Not affected"]


def _toolchain(build: Path) -> Environment:
    cache = parse_cmake_cache(_text(build / "CMakeCache.txt"))
    compiler = cache.get("CMAKE_CXX_COMPILER", "")
    build_type = cache.get("CMAKE_BUILD_TYPE", "")
    flags = (cache.get("CMAKE_CXX_FLAGS", ""), cache.get(f"CMAKE_CXX_FLAGS_{build_type.upper()}", ""))
    of_linker = (cache.get("CMAKE_EXE_LINKER_FLAGS", ""), cache.get(f"CMAKE_EXE_LINKER_FLAGS_{build_type.upper()}", ""))
    return {
        "build": str(build),
        "build_type": build_type,
        "compiler": _version(compiler, "--version"),
        "compiler_flags": " ".join(" ".join(flags).split()),
        "linker_flags": " ".join(" ".join(of_linker).split()),
        "build_environment": cache.get("NETDYNO_BUILD_ENVIRONMENT", ""),
        "rust": _version(cache.get("NETDYNO_RUSTC", ""), "--version"),
        "go": _version(cache.get("NETDYNO_GO", ""), "version"),
        "java": _version(cache.get("NETDYNO_JAVA", ""), "--version"),
        "interprocedural_optimization": cache.get("CMAKE_INTERPROCEDURAL_OPTIMIZATION", ""),
        "libc": _libc(),
    }


@functools.cache
def _libc() -> str:
    return " ".join(platform.libc_ver()).strip()


@functools.cache
def _version(program: str, question: str) -> str:
    """The first line of what a program answers; empty where there is none."""
    return _output([program, question]).partition("\n")[0] if program else ""


def parse_cmake_cache(text: str) -> dict[str, str]:
    """NAME:TYPE=VALUE lines of a CMakeCache.txt. Pure."""
    return dict(re.findall(r"^([A-Za-z_]\w*):\w+=(.*)$", text, re.MULTILINE))


@functools.cache
def libraries(package_list: Path) -> tuple[str, ...]:
    """The installed versions of the C++ libraries on the project's package list (Debian and Ubuntu)."""
    names = [line.split("#")[0].strip() for line in _text(package_list).splitlines()]
    wanted = [name for name in names if name.endswith("-dev")]
    if not wanted:
        return ()
    listed = _output(["dpkg-query", "-W", "-f", "${db:Status-Abbrev}|${Package} ${Version}\n", *wanted])
    return tuple(line.split("|", 1)[1] for line in listed.splitlines() if line.startswith("ii"))


def commit(root: Path = ROOT) -> Environment:
    """The commit of this tree, and whether it was changed since; where it cannot be read, git's own word why."""
    # Git refuses a tree of another user (safe.directory, git-config(1)), lest what its configuration names be started.
    # Whoever asks here runs this tree's own programs.
    git = ["git", "-c", f"safe.directory={root.resolve()}", "-C", str(root)]
    if shutil.which("git") is None:
        return {"git_commit": "unknown (git is not installed)"}
    try:
        asked = subprocess.run([*git, "rev-parse", "HEAD"], capture_output=True, text=True, timeout=5, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return {"git_commit": f"unknown ({error})"}
    if asked.returncode != 0:
        first = next(iter(asked.stderr.strip().splitlines()), f"git ended with exit code {asked.returncode}")
        return {"git_commit": f"unknown ({first})"}
    return {"git_commit": asked.stdout.strip(), "git_dirty": bool(_output([*git, "status", "--porcelain"]))}


def _text(path: Path) -> str:
    """A small file of the kernel's, stripped; empty where it is missing or not for us to read."""
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""


def _output(command: Sequence[str]) -> str:
    """What a program says on stdout; empty where it is not installed, fails or takes longer than 5 s."""
    if shutil.which(command[0]) is None:
        return ""
    try:
        # dpkg-query exits with 1 when one of several packages is unknown, and still lists the others
        done = subprocess.run(command, capture_output=True, text=True, timeout=5, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip()
