"""Every check of the doctor on made-up machines, with each of its verdicts; and the command on this machine."""

from __future__ import annotations

import errno
import fnmatch
import json
import os
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import get_args

import pytest
from msgspec.structs import replace

from netdyno.kit.paths import ROOT
from netdyno.measure.machine import pinning
from netdyno.measure.machine.cpu_share import MachineSnapshot
from netdyno.measure.machine.links.namespace import NotAllowedError
from netdyno.model.observation import Pinning
from netdyno.question.contestants.kernel import explain_uring_error
from netdyno.verbs.instruments.doctor import examine
from netdyno.verbs.instruments.doctor.checks.core_users import parse_pressure, sum_device_interrupts
from netdyno.verbs.instruments.doctor.finding import DoctorVerdict, Finding, as_text, list_checks
from netdyno.verbs.instruments.doctor.system import Moment, System

CPU = "/sys/devices/system/cpu"
CLOCK = "/sys/devices/system/clocksource/clocksource0"
THP = "/sys/kernel/mm/transparent_hugepage/enabled"
INTERRUPTS = """           CPU0       CPU1
 24:       {first}          5   PCI-MSI 0-edge  eth0
 25:          0          7   PCI-MSI 1-edge  disk
LOC:     999999     999999   Local timer interrupts
"""

QUIET = {
    **{f"{CPU}/cpu{core}/cpufreq/scaling_governor": "performance" for core in (0, 1)},
    f"{CPU}/intel_pstate/no_turbo": "1",
    f"{CPU}/vulnerabilities/meltdown": "Mitigation: PTI",
    f"{CPU}/vulnerabilities/mds": "Vulnerable: Clear CPU buffers attempted, no microcode",
    f"{CPU}/vulnerabilities/l1tf": "Not affected",
    THP: "always [madvise] never",
    f"{CLOCK}/current_clocksource": "tsc",
    f"{CLOCK}/available_clocksource": "tsc hpet acpi_pm",
    "/proc/cmdline": "quiet",
    "/proc/pressure/cpu": "some avg10=0.31 avg60=0.20 avg300=0.10 total=17508767057",
    "/proc/self/cgroup": "0::/user.slice/me",
    "/proc/self/mountinfo": "30 23 0:26 / /sys/fs/cgroup rw shared:4 - cgroup2 cgroup2 rw",
    "/sys/fs/cgroup/user.slice/me/cpu.max": "max 100000",
    "/proc/sys/net/core/somaxconn": "4096",
    "/proc/sys/net/ipv4/tcp_max_syn_backlog": "1024",
    "/proc/sys/net/ipv4/tcp_syncookies": "1",
    "/proc/sys/net/ipv4/ip_local_port_range": "32768 60999",
    "/proc/sys/net/core/rmem_max": "4194304",
    "/proc/sys/kernel/perf_event_paranoid": "1",
    "/sys/bus/event_source/devices/cpu": "",
}
"""The files of a machine of which nothing is to be wished."""


def stat(idle: int, steal: int) -> str:
    """/proc/stat of two cores that share these ticks of 10 ms between them, and have worked as well."""
    return "".join(f"cpu{core} 100 0 100 {1000 + idle // 2} 0 0 0 {steal // 2} 0 0\n" for core in (0, 1))


PINNED = Pinning(server=(0,), generator=(1,), note="server pinned to core 0, generator to core 1", realtime=True)
SHARED = Pinning(server=(), generator=(), note="not pinned: server and generator share the only core")
THREADS = replace(PINNED, note="server and generator pinned to hardware threads of the same physical core")
REFUSED = "unshare: Operation not permitted (in a container, start that with CAP_SYS_ADMIN)"


@dataclass
class Made(System):
    """A healthy machine of two cores, but for the changes that a test makes."""

    files: dict[str, str] = field(default_factory=dict)
    cores: frozenset[int] = frozenset({0, 1})
    pinning: Pinning = PINNED
    is_root: bool = False
    hard_descriptors: float = float("inf")
    programs: tuple[str, ...] = ("perf",)
    no_namespace: str = ""
    no_lan: str = ""
    no_netem: str = ""
    no_uring: str = ""
    idle_ticks: int = 100
    stolen_ticks: int = 0
    interrupts: int = 10
    tells: bool = True

    def text(self, path: str) -> str:
        return {**QUIET, **self.files}.get(path, "")

    def paths(self, folder: str, pattern: str) -> list[str]:
        names = {**QUIET, **self.files}
        return sorted(path for path in names if fnmatch.fnmatch(path, f"{folder}/{pattern}"))

    @property
    def watched(self) -> tuple[Moment, Moment]:
        """Half a second of two cores is 100 ticks."""
        if not self.tells:
            return (Moment(MachineSnapshot(1.0, "", 0.0), ""),) * 2
        before = Moment(MachineSnapshot(1.0, stat(0, 0), 0.0), INTERRUPTS.format(first=0))
        after = MachineSnapshot(1.5, stat(self.idle_ticks, self.stolen_ticks), 0.0)
        return before, Moment(after, INTERRUPTS.format(first=self.interrupts))

    def has_program(self, name: str) -> bool:
        return name in self.programs

    def why_no_namespace(self) -> str:
        return self.no_namespace

    def why_no_lan(self) -> str:
        return self.no_lan

    def why_no_netem(self) -> str:
        if self.no_namespace:
            raise NotAllowedError(self.no_namespace)
        return self.no_netem

    def why_no_uring(self) -> str:
        return self.no_uring


def governors(first: str, second: str) -> dict[str, str]:
    return {f"{CPU}/cpu{core}/cpufreq/scaling_governor": name for core, name in ((0, first), (1, second))}


CASES: list[tuple[str, Made, DoctorVerdict, str]] = [
    ("cores", Made(), "good", "2 to use: server pinned to core 0"),
    ("cores", Made(pinning=SHARED, cores=frozenset({0})), "bad", "share the only core"),
    ("cores", Made(pinning=THREADS), "could be better", "hardware threads"),
    ("governor", Made(), "good", "performance on 2 of 2 cores"),
    (
        "governor",
        Made(files=governors("schedutil", "performance")),
        "could be better",
        "performance on 1 of 2 cores",
    ),
    ("governor", Made(files=governors("powersave", "powersave")), "bad", "powersave on 2 of 2 cores"),
    (
        "governor",
        Made(files=governors("powersave", "powersave") | {f"{CPU}/intel_pstate/status": "active"}),
        "could be better",
        "powersave",
    ),
    ("governor", Made(files=governors("", "")), "unknown", "no frequency control"),
    ("turbo", Made(), "good", "off"),
    ("turbo", Made(files={f"{CPU}/intel_pstate/no_turbo": "0"}), "could be better", "on"),
    ("turbo", Made(files={f"{CPU}/intel_pstate/no_turbo": "", f"{CPU}/cpufreq/boost": "1"}), "could be better", "on"),
    ("turbo", Made(files={f"{CPU}/intel_pstate/no_turbo": "", f"{CPU}/cpufreq/boost": "0"}), "good", "off"),
    ("turbo", Made(files={f"{CPU}/intel_pstate/no_turbo": ""}), "unknown", "no frequency control"),
    ("mitigations", Made(), "good", "on for 1 weaknesses of this CPU, 1 left open"),
    (
        "mitigations",
        Made(files={"/proc/cmdline": "ro mitigations=off"}),
        "could be better",
        "off (mitigations=off)",
    ),
    (
        "mitigations",
        Made(files={f"{CPU}/vulnerabilities/meltdown": "Vulnerable"}),
        "could be better",
        "off: 2",
    ),
    (
        "mitigations",
        Made(files=dict.fromkeys((f"{CPU}/vulnerabilities/{name}" for name in ("meltdown", "mds")), "Not affected")),
        "good",
        "on for 0 weaknesses of this CPU, 0 left open",
    ),
    ("huge pages", Made(), "good", "madvise"),
    ("huge pages", Made(files={THP: "[always] madvise never"}), "could be better", "always"),
    ("huge pages", Made(files={THP: ""}), "unknown", "not here"),
    ("clock source", Made(), "good", "tsc"),
    ("clock source", Made(files={f"{CLOCK}/current_clocksource": "hpet"}), "bad", "hpet (there are: tsc hpet acpi_pm)"),
    ("clock source", Made(files={f"{CLOCK}/current_clocksource": ""}), "unknown", "not reported by this kernel"),
    ("steal", Made(), "good", "0.0% of the cores' time"),
    ("steal", Made(idle_ticks=98, stolen_ticks=2), "could be better", "2.0%"),
    ("steal", Made(idle_ticks=96, stolen_ticks=4), "bad", "4.0%"),
    ("steal", Made(tells=False), "unknown", "not reported by this kernel"),
    (
        "foreign load",
        Made(),
        "good",
        "0.5 s; something waited for a core in 0% of the last 10 s",
    ),
    ("foreign load", Made(idle_ticks=98), "could be better", "2%"),
    ("foreign load", Made(idle_ticks=94), "bad", "6%"),
    (
        "foreign load",
        Made(files={"/proc/pressure/cpu": "some avg10=12.3 avg60=0"}),
        "could be better",
        "12% of the last",
    ),
    ("foreign load", Made(files={"/proc/pressure/cpu": ""}), "good", "0% of the cores' time within 0.5 s"),
    ("foreign load", Made(tells=False), "unknown", "not reported by this kernel"),
    ("interrupts", Made(), "good", "20 per second"),
    (
        "interrupts",
        Made(interrupts=5000),
        "could be better",
        "most of them number 24",
    ),
    (
        "interrupts",
        Made(interrupts=5000, pinning=replace(PINNED, server=(1,))),
        "good",
        "0 per second",
    ),
    ("interrupts", Made(tells=False), "unknown", "not reported by this kernel"),
    ("cpu quota", Made(), "good", "none"),
    (
        "cpu quota",
        Made(files={"/sys/fs/cgroup/user.slice/me/cpu.max": "150000 100000"}),
        "bad",
        "1.5 cores' time",
    ),
    ("cpu quota", Made(files={"/sys/fs/cgroup/user.slice/cpu.max": "50000 100000"}), "bad", "0.5 cores' time"),
    (
        "cpu quota",
        Made(files={"/sys/fs/cgroup/cpu.max": "400000 100000"}),
        "could be better",
        "4 cores' time",
    ),
    (
        "cpu quota",
        Made(files={"/sys/fs/cgroup/cpu.max": "200000 100000"}),
        "could be better",
        "2 cores' time for 2 cores",
    ),
    (
        "cpu quota",
        Made(
            files={
                "/proc/self/cgroup": "3:memory:/box\n2:cpu,cpuacct:/box\n0::/",
                "/proc/self/mountinfo": "32 31 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct",
                "/sys/fs/cgroup/cpu/box/cpu.cfs_quota_us": "100000",
                "/sys/fs/cgroup/cpu/box/cpu.cfs_period_us": "100000",
            }
        ),
        "bad",
        "1 cores' time for 2 cores",
    ),
    (
        "cpu quota",
        Made(
            files={
                "/proc/self/cgroup": "2:cpu:/",
                "/proc/self/mountinfo": "32 31 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu",
                "/sys/fs/cgroup/cpu/cpu.cfs_quota_us": "-1",
                "/sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000",
            }
        ),
        "good",
        "none",
    ),
    ("accept queue", Made(), "good", "net.core.somaxconn is 4096"),
    ("accept queue", Made(files={"/proc/sys/net/core/somaxconn": "1024"}), "could be better", "1024"),
    ("accept queue", Made(files={"/proc/sys/net/core/somaxconn": "128"}), "bad", "128"),
    ("accept queue", Made(files={"/proc/sys/net/core/somaxconn": ""}), "unknown", "not reported by this kernel"),
    ("SYN backlog", Made(), "good", "net.ipv4.tcp_max_syn_backlog is 1024"),
    ("SYN backlog", Made(files={"/proc/sys/net/ipv4/tcp_max_syn_backlog": "128"}), "could be better", "128"),
    (
        "SYN backlog",
        Made(files={"/proc/sys/net/ipv4/tcp_max_syn_backlog": "128", "/proc/sys/net/ipv4/tcp_syncookies": "0"}),
        "bad",
        "128",
    ),
    (
        "SYN backlog",
        Made(files={"/proc/sys/net/ipv4/tcp_max_syn_backlog": ""}),
        "unknown",
        "not reported by this kernel",
    ),
    ("ports", Made(), "good", "28232 (32768 to 60999), for 10000 connections"),
    ("ports", Made(files={"/proc/sys/net/ipv4/ip_local_port_range": "40000\t54999"}), "could be better", "15000"),
    ("ports", Made(files={"/proc/sys/net/ipv4/ip_local_port_range": "50000 59998"}), "bad", "9999"),
    ("ports", Made(files={"/proc/sys/net/ipv4/ip_local_port_range": ""}), "unknown", "not reported by this kernel"),
    ("UDP buffers", Made(), "good", "4194304 bytes"),
    (
        "UDP buffers",
        Made(files={"/proc/sys/net/core/rmem_max": "212992"}),
        "could be better",
        "212992 bytes",
    ),
    (
        "UDP buffers",
        Made(files={"/proc/sys/net/core/rmem_max": "212992"}, is_root=True),
        "good",
        "which root gets anyway",
    ),
    ("UDP buffers", Made(files={"/proc/sys/net/core/rmem_max": ""}), "unknown", "not reported by this kernel"),
    ("namespaces", Made(), "good", "can be made, without root"),
    ("namespaces", Made(is_root=True), "good", "can be made"),
    ("namespaces", Made(no_namespace=REFUSED), "bad", "cannot be made: unshare: Operation not permitted"),
    ("link lan", Made(), "good", "can be made, with a rate"),
    ("link lan", Made(no_lan="ip not found: install iproute2"), "could be better", "ip not found: install iproute2"),
    ("netem", Made(), "good", "available"),
    ("netem", Made(no_netem="tc: Error: Specified qdisc kind is unknown."), "could be better", "qdisc kind is unknown"),
    (
        "netem",
        Made(no_namespace=REFUSED),
        "unknown",
        "not tried, because no namespace can be made: unshare: Operation not permitted",
    ),
    ("descriptors", Made(), "good", "no limit"),
    ("descriptors", Made(hard_descriptors=30_064), "good", "30064 per program, for 10000 connections"),
    ("descriptors", Made(hard_descriptors=20_000), "could be better", "20000 per program"),
    ("descriptors", Made(hard_descriptors=4096), "bad", "4096 per program"),
    ("real-time priority", Made(), "good", "may have it"),
    (
        "real-time priority",
        Made(pinning=replace(PINNED, realtime=False)),
        "could be better",
        "may not have it",
    ),
    ("real-time priority", Made(pinning=SHARED), "unknown", "no core of its own"),
    ("io_uring", Made(), "good", "available"),
    ("io_uring", Made(no_uring=explain_uring_error(errno.EPERM, "6.12", "2")), "could be better", "is forbidden"),
    ("io_uring", Made(no_uring=explain_uring_error(errno.EINVAL, "5.15", "")), "could be better", "Linux 6.1 or newer"),
    ("perf", Made(), "good", "installed"),
    ("perf", Made(programs=()), "could be better", "not installed"),
    ("perf", Made(files={"/proc/sys/kernel/perf_event_paranoid": "4"}), "could be better", "paranoid is 4"),
    ("perf", Made(files={"/proc/sys/kernel/perf_event_paranoid": "4"}, is_root=True), "good", "installed"),
    ("perf", Made(files={"/proc/sys/kernel/perf_event_paranoid": ""}), "unknown", "no perf events"),
]


def finding(name: str, system: System) -> Finding:
    (selected,) = [check for check in list_checks() if check.name == name]
    return selected.examine(system)


@pytest.mark.parametrize(("name", "system", "verdict", "part"), CASES, ids=[f"{case[0]}-{case[2]}" for case in CASES])
def test_a_made_up_machine_gets_its_verdict(name: str, system: Made, verdict: DoctorVerdict, part: str) -> None:
    result = finding(name, system)
    assert (result.verdict, part in result.found) == (verdict, True), result
    assert bool(result.fix) == (verdict in ("bad", "could be better"))
    assert result.fix or not result.needs_root


def test_every_check_has_a_case_for_each_verdict_that_it_can_come_to() -> None:
    """Each check has a case for `good` and at least one other verdict."""
    verdicts: dict[str, set[str]] = {}
    for name, _, verdict, _ in CASES:
        verdicts.setdefault(name, set()).add(verdict)
    assert verdicts.keys() == {check.name for check in list_checks()}
    assert all("good" in seen and len(seen) > 1 for seen in verdicts.values())


def test_a_quiet_machine_is_reported_on_one_screen() -> None:
    lines = as_text(examine(Made()), 100).splitlines()
    assert lines[0] == f"this machine: {len(list_checks())} good"
    assert len(lines) <= 24
    assert all(len(line) <= 100 for line in lines)


def test_the_worst_stands_first_with_its_effect_and_its_fix() -> None:
    findings = examine(Made(files=governors("powersave", "powersave") | {THP: "[always]"}, tells=False))
    order = [result.verdict for result in findings]
    assert order == sorted(order, key=get_args(DoctorVerdict).index)
    assert (findings[0].name, findings[1].name) == ("governor", "huge pages")
    text = as_text(findings, 100)
    assert text.startswith("this machine: 1 bad, 1 could be better, 3 unknown, ")
    assert "    A core that must first speed up makes latencies at low load longer, and those of short windows" in text
    assert "\n    fix (root): cpupower frequency-set -g performance\n" in text
    assert text.count("fix") == 2, "what is good or unknown wants nothing"


def test_a_fix_that_needs_no_root_says_so() -> None:
    result = finding("foreign load", Made(idle_ticks=0))
    assert not result.needs_root
    assert "\n    fix: end other programs (top shows them), and measure when nothing else runs" in as_text(
        [result], 100
    )


def test_a_namespace_that_is_refused_tells_the_way_to_get_one() -> None:
    assert finding("namespaces", Made(no_namespace=REFUSED)).fix == "in a container, start that with CAP_SYS_ADMIN"
    assert finding("link lan", Made(no_lan="ip not found: install iproute2")).fix == "install iproute2"


def test_every_effect_is_one_sentence_on_one_line() -> None:
    for check in list_checks():
        assert check.effect.endswith("."), check.name
        assert ". " not in check.effect, check.name


def test_the_manual_names_every_check() -> None:
    manual = (ROOT / "docs" / "doctor.md").read_text().lower()
    for check in list_checks():
        assert all(word in manual for word in check.name.lower().split()), check.name


def test_pressure_is_read_where_the_kernel_has_it() -> None:
    assert (
        parse_pressure("some avg10=70.54 avg60=56.88 avg300=49.35 total=17\nfull avg10=1.00 avg60=0 avg300=0 total=0")
        == 70.54
    )
    assert parse_pressure("") is None


def test_interrupts_of_devices_are_summed_over_the_cores_requested() -> None:
    assert sum_device_interrupts(INTERRUPTS.format(first=3), (0, 1)) == {"24": 8, "25": 7}
    assert sum_device_interrupts(INTERRUPTS.format(first=3), (1,)) == {"24": 5, "25": 7}
    assert sum_device_interrupts("", (0,)) == {}


def doctor(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "netdyno", "doctor", *arguments],
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": str(ROOT / "python"), "COLUMNS": "100"},
        check=False,
    )


def test_the_command_looks_at_this_machine() -> None:
    done = doctor()
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("this machine: ")
    for check in list_checks():
        assert f"  {check.name} " in done.stdout
    cores = len(os.sched_getaffinity(0))
    assert f"{cores} to use: {pinning.choose().note.partition(';')[0][:20]}" in done.stdout


def test_the_command_prints_json() -> None:
    done = doctor("--json")
    assert (done.returncode, done.stderr) == (0, "")
    findings = json.loads(done.stdout)
    assert {result["name"] for result in findings} == {check.name for check in list_checks()}
    for result in findings:
        assert set(result) == {"name", "found", "verdict", "effect", "fix", "needs_root"}
        assert result["verdict"] in get_args(DoctorVerdict)


def test_wrong_words_are_an_error_of_usage() -> None:
    done = doctor("--jsn")
    assert done.returncode == 2
    assert "netdyno doctor --help" in done.stderr


def test_no_check_leaves_anything_behind(tmp_path: Path) -> None:
    """The networks that are tried are gone with their trial."""
    before = set(Path("/proc/self/task").iterdir())
    children = Path(f"/proc/self/task/{os.getpid()}/children")
    running = children.read_text()
    examine(System())
    assert children.read_text() == running
    assert set(Path("/proc/self/task").iterdir()) <= before  # one of an earlier test may have ended meanwhile
