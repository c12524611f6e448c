"""The progress of a run: a live block on a terminal, one clean line per trial on a pipe.

Drawing happens only when the runner calls, at most twice a second inside a window, so no thread of its own runs and the
machine stays quiet."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import IO, TYPE_CHECKING

from netdyno.kit import quantities
from netdyno.kit.escape import harmless
from netdyno.measure.run.progress import Progress, RunEvent
from netdyno.model import outcomes, transports
from netdyno.model.load_result import WriteOnly
from netdyno.model.trial import Trial
from netdyno.present.prose.exclusions import STATUS_WORDS
from netdyno.present.prose.progress import describe_event, format_left
from netdyno.question.plan import Cell
from netdyno.question.side_by_side import BACKLOG, ROTATION

if TYPE_CHECKING:
    from rich.console import Console

_REDRAW_S = 2.0
"""The least time between two pictures: each takes milliseconds of a core that server and load may need."""
SILENT_S = 30.0
"""The longest time without a line on a pipe, however long a trial is."""
LONGEST_LINE = 120
"""Columns for a trial on the terminal; the report has all of it."""
AS_A_BOUND = "as a bound"
"""The mark of a trial with the generator near its limit: it may have added to the time, and limited the rate."""
BEHIND_IN_SLICES = "it fell behind a slice's rate; if most of its trials do, each server runs alone"

LONGER_THAN_SLICES = "its threads need longer than a slice to run once each: each server runs alone"


def describe_cell(cell: Cell | Trial) -> str:
    """Describe a cell in a few words: "echo connections=10 asio-callbacks"."""
    levels = "".join(f" {name}={level}" for name, level in cell.levels.items())
    return f"{cell.scenario}{levels} {cell.contestant}{quantities.TWIN if cell.twin else ''}"


def describe_result(trial: Trial) -> str:
    """Describe the result of a trial, with the reason where it does not count."""
    if outcomes.is_disturbed(trial):
        causes = [audit.name for audit in outcomes.disturbances(trial)]
        if BACKLOG in causes and not outcomes.had_company(trial):
            return BEHIND_IN_SLICES
        if ROTATION in causes:
            return LONGER_THAN_SLICES
        again = f", try {trial.attempt}" if trial.attempt > 1 else ""
        return f"the machine disturbed it ({quantities.listed(causes)}){again}"
    status = outcomes.by_itself(trial)
    if status not in outcomes.RANKED or trial.load is None:
        return f"{STATUS_WORDS[trial.status]}: {trial.reason}"
    if isinstance(writes := trial.load.write_only, WriteOnly):
        ended = ", and the server ended" if trial.ended_by else ""
        return (
            f"{quantities.whole(writes.per_second)}/s written, {writes.finished} of {trial.load.plan.connections} "
            f"clients finished{ended}"
        )
    response = trial.load.latency.response_ns
    p99 = f"{quantities.whole(response.p99 / 1000)} us" if response.count else quantities.DASH
    lost = transports.share_lost(trial.load)
    lost_words = f", {quantities.share(lost)} lost" if lost is not None else ""
    bound = f", {AS_A_BOUND}" if status == "censored" else ""
    return f"{quantities.whole(trial.load.requests.per_second)}/s, p99 {p99}{lost_words}{bound}"


class PlainDisplay:
    """The display for pipes and logs: one line per trial, and a line now and then within a long trial; no control
    codes."""

    def __init__(self, stream: IO[str], clock: Callable[[], float] = time.monotonic) -> None:
        self._stream = stream
        self._clock = clock
        self._printed_at = clock()
        self._running = ""

    def begin(self, event: RunEvent) -> None:
        for line in describe_event(event).splitlines():
            self._write_line(line)

    def trial_started(self, cell: Cell, progress: Progress) -> None:
        """Write no line yet: it comes with the result."""
        self._running = self._describe_trial(cell, progress, progress.done + 1)

    def throughput(self, completed: int, seconds: float) -> None:
        if self._clock() - self._printed_at >= SILENT_S and seconds > 0:
            self._write_line(
                quantities.shortened(f"{self._running}: {quantities.whole(completed / seconds)}/s so far", LONGEST_LINE)
            )

    def trial_done(self, trial: Trial, progress: Progress) -> None:
        text = f"{self._describe_trial(trial, progress, progress.done)}: {describe_result(trial)}"
        self._write_line(quantities.shortened(text, LONGEST_LINE))

    def _describe_trial(self, cell: Cell | Trial, progress: Progress, number: int) -> str:
        where = f"block {cell.block}/{progress.blocks} trial {number}/{progress.total}"
        return f"{where} ({format_left(progress)}) {describe_cell(cell)}"

    def note(self, event: RunEvent) -> None:
        self._write_line(describe_event(event))

    def close(self) -> None:
        self._stream.flush()

    def _write_line(self, text: str) -> None:
        self._printed_at = self._clock()
        print(harmless(" ".join(text.split())), file=self._stream, flush=True)


class LiveDisplay:
    """The display for terminals: a few lines redrawn in place; trials that do not count scroll by above them."""

    def __init__(self, console: Console) -> None:
        from rich.live import Live

        self._console = console
        self._live = Live(console=console, auto_refresh=False, transient=True)
        self._cell: Cell | None = None
        self._progress: Progress | None = None
        self._per_second: float | None = None  # until the load reports
        self._drawn_at = 0.0

    def begin(self, event: RunEvent) -> None:
        self._console.print(describe_event(event), highlight=False, markup=False)
        self._live.start()

    def trial_started(self, cell: Cell, progress: Progress) -> None:
        self._cell, self._progress, self._per_second = cell, progress, None
        self._draw()

    def throughput(self, completed: int, seconds: float) -> None:
        self._per_second = completed / seconds if seconds > 0 else None
        if time.monotonic() - self._drawn_at >= _REDRAW_S:
            self._draw()

    def trial_done(self, trial: Trial, progress: Progress) -> None:
        from rich.text import Text

        if outcomes.by_itself(trial) in ("struck_out", "failed"):
            text = quantities.shortened(f"{describe_cell(trial)}: {describe_result(trial)}", LONGEST_LINE)
            self._console.print(Text(text, style="yellow"))  # style= would colour the live block as well

    def note(self, event: RunEvent) -> None:
        self._console.print(describe_event(event), highlight=False, markup=False)

    def close(self) -> None:
        self._live.stop()

    def _draw(self) -> None:
        from rich.text import Text

        if self._cell is None or self._progress is None:
            return
        self._drawn_at = time.monotonic()
        lines = render(self._cell, self._progress, self._per_second, self._console.width)
        self._live.update(Text("\n".join(lines), no_wrap=True, overflow="ellipsis"), refresh=True)


def render(cell: Cell, progress: Progress, per_second: float | None, width: int) -> list[str]:
    """The live block: the progress, the time left, the current trial, and its rate. Pure."""
    share = progress.done / progress.total if progress.total else 1.0
    bar_width = max(10, min(40, width - 50))
    filled = round(share * bar_width)
    bar = "━" * filled + "─" * (bar_width - filled)
    counts = ", ".join(
        f"{count} {AS_A_BOUND if status == 'censored' else STATUS_WORDS[status]}"
        for status, count in [*sorted(progress.counts.items()), ("made_again", progress.retried)]
        if count
    )
    speed = "starting" if per_second is None else f"{quantities.whole(per_second)} messages/s"
    return [
        f"{bar} {share:4.0%}  {format_left(progress)}",
        f"block {cell.block}/{progress.blocks}, trial {progress.done + 1}/{progress.total}: {describe_cell(cell)}",
        f"{speed}{f'   ({counts})' if counts else ''}",
    ]
