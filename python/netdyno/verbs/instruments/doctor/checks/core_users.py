"""Checks of other users of the cores: other machines, other programs, devices, and the limits of a container."""

from __future__ import annotations

from collections.abc import Collection

from netdyno.measure.audits.of_trial import FOREIGN_MOST_CORES, FOREIGN_SHARE, STEAL_SHARE
from netdyno.measure.machine import cpu_share
from netdyno.measure.machine.cpu_quota import find_tightest_quota
from netdyno.model.observation import MachineObservation
from netdyno.verbs.instruments.doctor.finding import Opinion, check
from netdyno.verbs.instruments.doctor.system import WATCHED_S, System

_QUIET_SHARE = 0.01
"""The share of all cores' time that a system at rest uses for itself."""
_WAITING_PERCENT = 5.0
_INTERRUPTS_HZ = 1000


@check("steal", "Time that the hypervisor took is missing at random; above 2% in a window the trial is retried.")
def steal(system: System) -> Opinion:
    """The steal column of /proc/stat, over half a second."""
    observation = _observe_machine(system)
    if observation is None:
        return Opinion("not reported by this kernel", "unknown")
    share = observation.steal_s / (observation.cores * observation.window_s)
    observed = f"{100 * share:.1f}% of the cores' time within {WATCHED_S:g} s"
    fix = "a machine of its own, or a virtual one with dedicated cores"
    if share > STEAL_SHARE:
        return Opinion(observed, "bad", fix, needs_root=False)
    return Opinion(observed, "could be better" if share > 0 else "good", fix, needs_root=False)


@check(
    "foreign load",
    "Other programs take cores and caches; above 3% of the cores' time in a window the trial is retried.",
)
def foreign_load(system: System) -> Opinion:
    """The load on the cores over half a second beside this process, and over the last ten (PSI, psi(7) in the
    kernel)."""
    observation = _observe_machine(system)
    if observation is None:
        return Opinion("not reported by this kernel", "unknown")
    limit = min(FOREIGN_SHARE, FOREIGN_MOST_CORES / observation.cores)
    share = observation.foreign_s / (observation.cores * observation.window_s)
    waiting = parse_pressure(system.text("/proc/pressure/cpu"))
    observed = f"{100 * share:.0f}% of the cores' time within {WATCHED_S:g} s"
    if waiting is not None:
        observed += f"; something waited for a core in {waiting:.0f}% of the last 10 s"
    fix = "end other programs (top shows them), and measure when nothing else runs"
    if share > limit:
        return Opinion(observed, "bad", fix, needs_root=False)
    if share > _QUIET_SHARE or (waiting or 0.0) > _WAITING_PERCENT:
        return Opinion(observed, "could be better", fix, needs_root=False)
    return Opinion(observed, "good")


def parse_pressure(text: str) -> float | None:
    """avg10 of `some` in /proc/pressure/cpu: percent of the last 10 s. None where the kernel has no PSI. Pure."""
    for line in text.splitlines():
        kind, *fields = line.split()
        averages = dict(field.partition("=")[::2] for field in fields)
        if kind == "some" and "avg10" in averages:
            return float(averages["avg10"])
    return None


@check(
    "interrupts",
    "A device's interrupts are served on the cores that they fall on, and delay the server or the generator.",
)
def interrupts(system: System) -> Opinion:
    """The interrupts of devices, counted over half a second on the cores that trials use."""
    before, after = (moment.interrupts for moment in system.watched)
    cores = system.pinning.server + system.pinning.generator or tuple(system.cores)
    first, last = sum_device_interrupts(before, cores), sum_device_interrupts(after, cores)
    if not first:
        return Opinion("not reported by this kernel", "unknown")
    rates = {name: (count - first.get(name, 0)) / WATCHED_S for name, count in last.items()}
    all_hz = sum(rates.values())
    observed = f"{all_hz:.0f} per second from devices on the cores of trials"
    if all_hz <= _INTERRUPTS_HZ:
        return Opinion(observed, "good")
    busiest = max(rates, key=lambda name: rates[name])
    fix = f"stop irqbalance; echo CORE > /proc/irq/{busiest}/smp_affinity_list, a core that trials do not use (taskset)"
    return Opinion(f"{observed}, most of them number {busiest}", "could be better", fix)


def sum_device_interrupts(text: str, cores: Collection[int]) -> dict[str, int]:
    """The numbered lines of /proc/interrupts, summed over these cores; a number is a device's. Pure."""
    lines = text.splitlines()
    columns = [int(name[3:]) for name in lines[0].split()] if lines else []
    counts: dict[str, int] = {}
    for line in lines[1:]:
        number, _, rest = line.partition(":")
        if number.strip().isdigit():
            core_counts = zip(columns, rest.split(), strict=False)
            counts[number.strip()] = sum(int(count) for core, count in core_counts if core in cores)
    return counts


@check(
    "cpu quota",
    "A group that has used up its share is stopped for the rest of each 100 ms: stalls that no server caused.",
)
def cpu_quota(system: System) -> Opinion:
    """The tightest of this process's control groups (measure/machine/cpu_quota.py)."""
    least = find_tightest_quota(system.text)
    if least is None:
        return Opinion("none", "good")
    observed = f"{least:g} cores' time for {len(system.cores)} cores"
    fix = "start the container without --cpus (systemd: CPUQuota=), and give it whole cores (--cpuset-cpus)"
    return Opinion(observed, "bad" if least < len(system.cores) else "could be better", fix)


def _observe_machine(system: System) -> MachineObservation | None:
    before, after = system.watched
    return cpu_share.compute_observation(before.machine, after.machine, system.cores)
