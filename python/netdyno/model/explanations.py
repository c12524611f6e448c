"""One sentence of why, from what was counted: a closed list of explanations, each a figure per something.

A sentence says what was counted on both sides of a claim, and nothing else: that one is the cause of the other is for
the reader to judge."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from netdyno.base import quantities
from netdyno.model.load_result import LoadResult
from netdyno.model.trial import Trial

Counted = tuple[Trial, LoadResult]


@dataclass(frozen=True)
class Explanation:
    """`amount` over `base`, summed over trials; None where a trial has no such counter."""

    title: str
    amount: Callable[[Trial, LoadResult], float | None]
    base: Callable[[Trial, LoadResult], float]
    speak: Callable[[float], str] = quantities.three_digits


def _kernel(*names: str, setup: bool = False) -> Callable[[Trial, LoadResult], float | None]:
    """The sum of counters of the kernel (observe.py) over the window; with `setup` over the connects too. None where
    one of them was not read."""
    phases = ("setup.", "") if setup else ("",)

    def amount(trial: Trial, _: LoadResult) -> float | None:
        found = [trial.kernel.get(phase + name) for name in names for phase in phases]
        return None if None in found else float(sum(one for one in found if one is not None))

    return amount


def _switches(trial: Trial, _: LoadResult) -> float | None:
    server = trial.server
    return None if server is None else server.voluntary_switches + server.involuntary_switches


def _cpu(trial: Trial, _: LoadResult) -> float | None:
    return None if trial.server is None else 1e9 * (trial.server.cpu_user_s + trial.server.cpu_system_s)


def _wait(trial: Trial, _: LoadResult) -> float | None:
    return None if trial.server is None else 1e9 * trial.server.run_queue_wait_s


def _memory(trial: Trial, _: LoadResult) -> float | None:
    return None if trial.server is None else float(trial.server.rss_peak_bytes)


def _threads(trial: Trial, _: LoadResult) -> float | None:
    return None if trial.server is None else float(trial.server.threads)


def _completed(_: Trial, load: LoadResult) -> float:
    return float(load.requests.completed)


def _thousands(_: Trial, load: LoadResult) -> float:
    return load.requests.completed / 1000


def _attempted(_: Trial, load: LoadResult) -> float:
    return load.connections.attempted / 1000


def _trial(_: Trial, __: LoadResult) -> float:
    return 1.0


EXPLANATIONS: Mapping[str, Explanation] = {
    "delayed-acks": Explanation("delayed ACKs per 1,000 messages", _kernel("DelayedACKs"), _thousands),
    "retransmits": Explanation("segments sent again per 1,000 messages", _kernel("RetransSegs"), _thousands),
    "listen-overflows": Explanation(
        "overflows of the listen queue per 1,000 connects", _kernel("ListenOverflows", setup=True), _attempted
    ),
    "switches": Explanation("context switches of the server per message", _switches, _completed),
    "run-queue": Explanation("wait of the server for a core per message", _wait, _completed, quantities.duration),
    "cpu": Explanation("server CPU per message", _cpu, _completed, quantities.duration),
    "memory": Explanation("peak memory of the server", _memory, _trial, quantities.memory),
    "threads": Explanation("threads of the server", _threads, _trial),
    "loss": Explanation(
        "share of messages lost",
        lambda _, load: float(load.messages.lost),
        lambda _, load: float(load.messages.expected),
        quantities.share,
    ),
}
"""By the name that a claim uses. Kernel counters are those of the network namespace, so of both sides together."""


def sentence(name: str, sides: Sequence[tuple[str, Sequence[Counted]]]) -> str:
    """What was counted on each side, by its name; a side without trials is left out. Empty where there is none."""
    explanation = EXPLANATIONS[name]
    told = [f"{_figure(explanation, trials)} {side}" for side, trials in sides if trials]
    return f"{explanation.title[0].upper()}{explanation.title[1:]}: {', '.join(told)}." if told else ""


def _figure(explanation: Explanation, trials: Sequence[Counted]) -> str:
    amounts = [explanation.amount(*one) for one in trials]
    base = sum(explanation.base(*one) for one in trials)
    if None in amounts or base <= 0:
        return "not recorded"
    return explanation.speak(sum(one for one in amounts if one is not None) / base)
