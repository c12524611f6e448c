"""The system calls by which a server sends and receives, counted with strace(1) while something is said to it."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator
from pathlib import Path

from netdyno.measure.machine import strace
from netdyno.measure.machine.trial_log import TrialLog

_RECEIVES = re.compile(r"\d+ +\d+\.\d+ (?:recvfrom|recvmsg|recvmmsg|read|readv)\(0x(?P<descriptor>[0-9a-f]+),.*")
_SENDS = re.compile(r"\d+ +\d+\.\d+ (?:sendto|sendmsg|sendmmsg|write|writev)\(0x(?P<descriptor>[0-9a-f]+),.*")

_UNFINISHED, _DETACHED = "<unfinished ...>", "<detached ...>"


def count_sending_calls(
    tool: str, pid: int, descriptors: Collection[int], converse: Callable[[], None], folder: Path
) -> int:
    """How many calls of a server sent to one of its descriptors in a conversation, which ends when all is received. A
    call that the socket took nothing from (EAGAIN) is left out."""
    return sum(" EAGAIN " not in call for call in _list_calls(_SENDS, tool, pid, descriptors, converse, folder))


def count_receiving_calls(
    tool: str, pid: int, descriptors: Collection[int], converse: Callable[[], None], folder: Path
) -> tuple[int, int]:
    """How many calls of a server on one of its descriptors received something in a conversation, and how many found
    nothing (EAGAIN)."""
    calls = [call for call in _list_calls(_RECEIVES, tool, pid, descriptors, converse, folder) if " = " in call]
    in_vain = sum(" EAGAIN " in call for call in calls)
    return len(calls) - in_vain, in_vain


def _list_calls(
    kind: re.Pattern[str],
    tool: str,
    pid: int,
    descriptors: Collection[int],
    converse: Callable[[], None],
    folder: Path,
) -> list[str]:
    """The lines of the trace with calls of a kind on one of the descriptors."""
    trace = folder / "trace"
    with strace.attach_tracer(tool, pid, (), trace, TrialLog(folder / "log")) as tracer:
        converse()
        tracer.terminate()
        strace.let_go(tracer)
    calls = map(kind.fullmatch, _join_halves(trace.read_text(encoding="utf-8").splitlines()))
    return [call.string for call in calls if call is not None and int(call["descriptor"], 16) in descriptors]


def _join_halves(lines: Iterable[str]) -> Iterator[str]:
    """Join the two lines that strace writes of a call during which another thread's call ended. One that had not ended
    when the tracer went has no " = " with a result."""
    begun: dict[str, str] = {}
    for line in lines:
        thread, _, rest = line.partition(" ")
        if rest.endswith((_UNFINISHED, _DETACHED)):
            begun[thread] = line.removesuffix(_UNFINISHED)
        elif " resumed>" in rest:
            yield begun.pop(thread, "") + rest.partition(" resumed>")[2]
        else:
            yield line
    yield from begun.values()
