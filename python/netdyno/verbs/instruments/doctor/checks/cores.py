"""Checks of the cores, their speed, and what the kernel does to each system call."""

from __future__ import annotations

from collections import Counter

from netdyno.measure.machine.environment import select_boot_options
from netdyno.verbs.instruments.doctor.finding import Opinion, check
from netdyno.verbs.instruments.doctor.system import System

_CPU = "/sys/devices/system/cpu"
_CLOCKS = "/sys/devices/system/clocksource/clocksource0"
_NO_FREQUENCY = "not here: the kernel has no frequency control (a virtual machine, mostly)"
_FAST_CLOCKS = ("tsc", "kvm-clock", "hyperv_clocksource_tsc_page", "arch_sys_counter", "timebase", "stp")
"""The clocks that are read without a system call (vdso(7))."""


@check("cores", "Where server and generator share a core, every figure of the server includes the generator's work.")
def cores(system: System) -> Opinion:
    """Server and generator get cores of their own (topology.py)."""
    pinned = system.pinning
    observed = f"{len(system.cores)} to use: {pinned.note.partition('; generator at ')[0]}"
    if not pinned.generator:
        fix = "allow two cores or more (taskset -c, docker run --cpuset-cpus), and a CPU quota, if any, of as many"
        return Opinion(observed, "bad", fix, needs_root=False)
    if "same physical core" in pinned.note:
        return Opinion(
            observed, "could be better", "allow two physical cores, or: echo off > /sys/devices/system/cpu/smt/control"
        )
    return Opinion(observed, "good")


@check(
    "governor", "A core that must first speed up makes latencies at low load longer, and those of short windows vary."
)
def governor(system: System) -> Opinion:
    """scaling_governor of each core (Documentation/admin-guide/pm/cpufreq.rst)."""
    governors = Counter(
        governor_name
        for core in system.cores
        if (governor_name := system.text(f"{_CPU}/cpu{core}/cpufreq/scaling_governor"))
    )
    if not governors:
        return Opinion(_NO_FREQUENCY, "unknown")
    observed = ", ".join(f"{name} on {count} of {len(system.cores)} cores" for name, count in sorted(governors.items()))
    fix = "cpupower frequency-set -g performance"
    if set(governors) == {"performance"}:
        return Opinion(observed, "good")
    # intel_pstate's powersave is no low speed but one that follows the load (intel_pstate.rst).
    active = "active" in (system.text(f"{_CPU}/intel_pstate/status"), system.text(f"{_CPU}/amd_pstate/status"))
    return Opinion(observed, "bad" if "powersave" in governors and not active else "could be better", fix)


@check(
    "turbo", "Boosted clocks fall as cores get busy and warm, so that later blocks and loads of more cores are slower."
)
def turbo(system: System) -> Opinion:
    """intel_pstate/no_turbo or cpufreq/boost."""
    no_turbo, boost = system.text(f"{_CPU}/intel_pstate/no_turbo"), system.text(f"{_CPU}/cpufreq/boost")
    if no_turbo:
        fix = f"echo 1 > {_CPU}/intel_pstate/no_turbo"
        return Opinion("off", "good") if no_turbo == "1" else Opinion("on", "could be better", fix)
    if boost:
        return (
            Opinion("off", "good")
            if boost == "0"
            else Opinion("on", "could be better", f"echo 0 > {_CPU}/cpufreq/boost")
        )
    return Opinion(_NO_FREQUENCY, "unknown")


@check(
    "mitigations", "They make each system call slower, most for contestants that make many; production has them too."
)
def mitigations(system: System) -> Opinion:
    """vulnerabilities/ of the CPU, and the boot option that turns all of them off."""
    weaknesses = [system.text(path) for path in system.paths(f"{_CPU}/vulnerabilities", "*")]
    if not weaknesses:
        return Opinion("not reported by this kernel", "unknown")
    mitigated_count = sum(text.startswith("Mitigation") for text in weaknesses)
    open_count = sum(text.startswith("Vulnerable") for text in weaknesses)
    observed = f"on for {mitigated_count} weaknesses of this CPU, {open_count} left open"
    off = {"mitigations=off", "nopti", "pti=off"}.intersection(select_boot_options(system.text("/proc/cmdline")))
    if off or (open_count and not mitigated_count):
        options_text = f" ({' '.join(sorted(off))})" if off else ""
        return Opinion(
            f"off{options_text}: {open_count} weaknesses are open", "could be better", "boot with mitigations=auto"
        )
    return Opinion(observed, "good")


@check(
    "huge pages",
    "Always-on huge pages pad stacks and heaps to multiples of 2 MiB and are merged in the background during a trial.",
)
def huge_pages(system: System) -> Opinion:
    """transparent_hugepage/enabled (Documentation/admin-guide/mm/transhuge.rst)."""
    folder = "/sys/kernel/mm/transparent_hugepage"
    chosen = system.text(f"{folder}/enabled").partition("[")[2].partition("]")[0]
    if not chosen:
        return Opinion("not here: the kernel has none", "unknown")
    if chosen == "always":
        return Opinion(chosen, "could be better", f"echo madvise > {folder}/enabled")
    return Opinion(chosen, "good")


@check("clock source", "A clock that is read by a system call costs the generator a microsecond for each time stamp.")
def clock_source(system: System) -> Opinion:
    """current_clocksource, and whether a fast one is available."""
    current = system.text(f"{_CLOCKS}/current_clocksource")
    available = system.text(f"{_CLOCKS}/available_clocksource").split()
    if not current:
        return Opinion("not reported by this kernel", "unknown")
    if current in _FAST_CLOCKS:
        return Opinion(current, "good")
    fast_clock = next((name for name in _FAST_CLOCKS if name in available), "")
    fix = (
        f"echo {fast_clock} > {_CLOCKS}/current_clocksource"
        if fast_clock
        else "boot with tsc=reliable, or use another machine"
    )
    return Opinion(f"{current} (there are: {' '.join(available)})", "bad", fix)
