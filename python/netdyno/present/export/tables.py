"""An export as JSON, as one table in CSV, a row a figure, and as a page of Markdown."""

from __future__ import annotations

import csv
import inspect
import io
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from netdyno.kit.escape import harmless, harmless_json, harmless_markdown
from netdyno.kit.quantities import DASH
from netdyno.kit.statistics.stats import Interval
from netdyno.kit.version import VERSION
from netdyno.model.metrics import METRICS
from netdyno.present.export.entries import AxisEntry, Export, FigureEntry, FlipEntry, QuestionEntry, ScoreEntry
from netdyno.present.plain import derive_type, make_plain
from netdyno.present.prose import company, ranking, verdict
from netdyno.present.prose import ground as ground_words

COLUMNS = (
    "table",
    "question",
    "level",
    "contestant",
    "against",
    "block",
    "attempt",
    "twin",
    "status",
    "metric",
    "unit",
    "value",
    "low",
    "high",
    "count",
    "rank",
    "ground",
    "text",
)
"""The columns of all tables; a row fills those of its table (protocol/export.md), and the others are empty."""
TableRow = Mapping[str, object]
WORK = ("bytes-in", "bytes-out", "packets", "softirq")
FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""A text with such a beginning may be a formula to a spreadsheet, which skips a tab."""


def format_json(export: Export) -> str:
    """Write an export as JSON; format_schema describes it."""
    plain = msgspec.structs.replace(export, findings=make_plain(export.findings))
    return harmless_json(msgspec.json.format(msgspec.json.encode(plain), indent=1).decode()) + "\n"


def format_schema() -> str:
    """Write the JSON Schema of an export as JSON."""
    titled = {"title": f"netdyno {VERSION}: report --export json", **msgspec.json.schema(derive_type(Export))}
    return json.dumps(_remove_indentation(titled), indent=1) + "\n"


def _remove_indentation(schema: Any) -> Any:
    """Return a schema with its descriptions as of Python 3.13, which removes the indentation of docstrings."""
    if isinstance(schema, list):
        return [_remove_indentation(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        name: inspect.cleandoc(part) if name == "description" and isinstance(part, str) else _remove_indentation(part)
        for name, part in schema.items()
    }


def format_csv(export: Export) -> str:
    """Write an export as CSV with the line ends of RFC 4180."""
    page = io.StringIO(newline="")
    writer = csv.DictWriter(page, COLUMNS, restval="")
    writer.writeheader()
    writer.writerows({key: _convert_value(value) for key, value in row.items()} for row in list_rows(export))
    return page.getvalue()


def _convert_value(value: object) -> object:
    """Return numbers with all their digits, and nothing for those that are not finite; a text that a spreadsheet may
    take for a formula gets a leading space."""
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if not isinstance(value, str):
        return value
    return f" {harmless(value)}" if value[:1] in FORMULA else harmless(value)


def _fill_ends(interval: Interval | FigureEntry | None) -> TableRow:
    return {"low": interval.low, "high": interval.high} if interval else {}


def list_rows(export: Export) -> Iterator[TableRow]:
    findings = export.findings
    for question in findings.scenarios:
        name = question.name
        yield {"table": "verdict", "question": name, "status": question.verdict, "text": question.sentence}
        for axis in question.axes:
            yield from _list_axis(name, question.figures_at, axis)
        for row in _list_details(question):
            yield {"question": name, **row}
    for claim in findings.claims:
        yield {"table": "claim", "question": claim.id, "status": claim.verdict, "text": claim.reason}
    for line in findings.gate.lines if findings.gate else ():
        about = {"question": line.scenario, "metric": line.metric, "status": line.outcome, "unit": "ratio"}
        yield {"table": "gate", **about, "value": line.ratio, **_fill_ends(line.interval), "count": line.blocks}
    for flip in findings.flips:
        yield from _list_flip(flip)
    for cell in export.cells:
        about = {"question": cell.question, "level": cell.level, "contestant": cell.contestant}
        for metric, figure in cell.figures.items():
            value = {"metric": metric, "unit": export.metrics[metric].unit, "value": figure.value}
            yield {"table": "cell", **about, **value, **_fill_ends(figure), "count": cell.trials}
    for trial in export.trials:
        about = {"question": trial.question, "level": trial.level, "contestant": trial.contestant}
        place = {"block": trial.block, "attempt": trial.attempt, "twin": trial.twin, "status": trial.status}
        if not trial.figures:
            yield {"table": "trial", **about, **place, "text": trial.reason}
        for metric, measured in trial.figures.items():
            unit = export.metrics[metric].unit
            yield {"table": "trial", **about, **place, "metric": metric, "unit": unit, "value": measured}
    for note in export.notes:
        yield {"table": "note", "question": note.question, "status": note.kind, "text": note.text}


def _list_flip(flip: FlipEntry) -> Iterator[TableRow]:
    about = {"question": flip.question, "metric": flip.metric, "contestant": flip.first, "against": flip.second}
    place = {"table": "flip", **about, "level": flip.factor, "status": flip.verdict}
    for crossing in flip.crossings:
        value = {"value": crossing.place, **_fill_ends(crossing.interval)}
        yield {**place, **value, "unit": flip.unit, "text": flip.sentence}
    if not flip.crossings:
        yield {**place, "unit": flip.unit, "text": flip.sentence}
    for level in flip.levels:
        ratio = {"unit": "ratio", "value": level.ratio, **_fill_ends(level.interval), "count": level.blocks}
        key = f"{flip.factor}={level.place:g}"
        yield {"table": "flip level", **about, **ratio, "level": key, "status": level.better or "open"}


def _list_details(question: QuestionEntry) -> Iterator[TableRow]:
    """List the capacities, pairs, work and unsafe servers of a question."""
    for curve in question.capacity.curves if question.capacity else ():
        about = {"level": curve.level, "contestant": curve.contestant, "unit": "messages/s"}
        bound = "at least" if curve.at_least else "at most" if curve.below else ""
        capacity = {"value": curve.capacity_hz, "count": curve.blocks, "status": bound}
        yield {"table": "capacity", "metric": "capacity", **about, **capacity}
        yield {"table": "capacity", "metric": "knee", **about, "value": curve.knee_hz}
        for point in curve.points:
            outcomes = f"{point.held} held, {point.failed} failed, {point.silent} not counted"
            about_rate = {"level": f"rate={point.rate_hz:.10g}", "contestant": curve.contestant, "text": outcomes}
            for metric, value in (("p50", point.p50_ns), ("p99", point.p99_ns), ("p99.9", point.p999_ns)):
                yield {"table": "rate", **about_rate, "metric": metric, "unit": "ns", "value": value}
    for pair in question.pairs:
        both = {"contestant": pair.contestant, "against": pair.client, "text": ", ".join(pair.statuses)}
        figure = {"metric": question.metric, "value": pair.figure, "count": pair.valid}
        yield {"table": "pair", **both, **figure, "unit": METRICS[question.metric].unit.name}
    for work in question.work:
        about = {"contestant": work.contestant, "level": work.level}
        parts = (work.bytes_in, work.bytes_out, work.packets, work.softirq_ns)
        for metric, estimate in zip(WORK, parts, strict=True):
            value_row = {"value": estimate.value, **_fill_ends(estimate.interval)} if estimate else {}
            yield {"table": "work", **about, "metric": metric, **value_row, "unit": METRICS[metric].unit.name}
        for call, per_message in work.calls.items():
            yield {"table": "work", **about, "metric": call, "unit": "1/message", "value": per_message}
    for cell in question.unread:
        about = {"contestant": cell.contestant, "level": cell.level}
        figures = {
            "finished": cell.finished,
            "written": cell.written_per_second,
            "server-ended": cell.ended / cell.trials,
        }
        for metric, value in figures.items():
            figure = {"metric": metric, "value": value, "unit": METRICS[metric].unit.name}
            yield {"table": "unread", **about, **figure, "count": cell.trials}
    for unsafe in question.unsafe:
        about = {"contestant": unsafe.contestant, "level": unsafe.level, "text": unsafe.why}
        for name in ("wrong", "expected", "lost", "duplicated", "reordered", "corrupt", "streams"):
            yield {"table": "unsafe", **about, "metric": name, "value": getattr(unsafe, name), "count": unsafe.trials}


def _list_axis(question: str, level: str | None, axis: AxisEntry) -> Iterator[TableRow]:
    for score in axis.scores:
        about = {"question": question, "level": level, "contestant": score.contestant, "rank": score.rank}
        figure = {"metric": axis.metric, "unit": axis.unit, "value": score.value, **_fill_ends(score.interval)}
        counted = {"count": score.trials, "status": score.bound, "ground": score.group}
        yield {"table": "ranking", **about, **figure, **counted}
    for comparison in axis.comparisons:
        about = {"question": question, "contestant": comparison.a, "against": comparison.b, "metric": axis.metric}
        ratio = {"unit": "ratio", "value": comparison.ratio, **_fill_ends(comparison.interval)}
        status = "different" if comparison.different else "open" if comparison.decidable else "not enough blocks"
        yield {"table": "comparison", **about, **ratio, "count": comparison.blocks, "status": status}


# --- Markdown ---------------------------------------------------------------------------------------------------------


def format_markdown(export: Export) -> str:
    """Write what a person reads: verdicts, rankings, comparisons, claims and notes; of the trials only their number."""
    findings = export.findings
    counted = msgspec.structs.asdict(findings.counts)
    counts = ", ".join(f"{count} {name.replace('_', ' ')}" for name, count in counted.items())
    parts = [
        f"# {harmless_markdown(findings.experiment)}",
        harmless_markdown(findings.question),
        f"Run {harmless_markdown(findings.run_id)}; trials: {counts}.",
    ]
    for question in findings.scenarios:
        parts += [
            f"## {harmless_markdown(question.name)}",
            f"**{harmless_markdown(question.headline)}.** {harmless_markdown(question.sentence)}",
        ]
        parts += [_describe_loads(question), _tabulate_ranking(question)]
        parts += map(_tabulate_comparisons, question.axes)
        notes = [note.text for note in export.notes if note.question == question.name]
        parts.append("\n".join(f"* {harmless_markdown(note)}" for note in notes))
    if findings.claims:
        claims = [(claim.id, claim.verdict, claim.reason) for claim in findings.claims]
        parts += ["## Claims", _tabulate(("claim", "verdict", "reason"), claims)]
    general = [note.text for note in export.notes if note.question is None]
    parts += ["## About the run", "\n".join(f"* {harmless_markdown(note)}" for note in general)]
    return "\n\n".join(part for part in parts if part) + "\n"


def _describe_loads(question: QuestionEntry) -> str:
    """Say at which load the figures are; nothing where there is one."""
    label = next((level.label for level in question.levels if level.key == question.figures_at), None)
    if label is None or len(question.levels) < 2:
        return ""
    return f"Figures at {harmless_markdown(label)}, ranks and ratios over {len(question.levels)} loads:"


def _tabulate_ranking(question: QuestionEntry) -> str:
    """Draw a table for each group that is ranked together."""
    grounds = dict.fromkeys(standing.group for standing in question.standings)
    return "\n\n".join(_tabulate_group(question, ground, is_divided=len(grounds) > 1) for ground in grounds)


def _tabulate_group(question: QuestionEntry, ground: int, *, is_divided: bool) -> str:
    mark = company.MARK if question.company else ""
    names = [standing.contestant for standing in question.standings if standing.group == ground]
    by_name = [(axis.metric, {score.contestant: score for score in axis.scores}) for axis in question.axes]
    lines = [(name, *(_format_score(metric, scores.get(name), mark) for metric, scores in by_name)) for name in names]
    if not lines or not by_name:
        return ""
    cores = question.ground.together[ground].cores if is_divided else ()
    heading = f"On {ground_words.describe_usable_cores(cores)}:\n\n" if is_divided else ""
    return heading + _tabulate(("contestant", *(metric for metric, _ in by_name)), lines)


def _format_score(metric: str, score: ScoreEntry | None, mark: str) -> str:
    """Return the figure with its mark, its interval, and the rank."""
    if score is None or score.value is None or not math.isfinite(score.value):
        return DASH
    speak, ends = METRICS[metric].speak, score.interval
    interval = f" ({speak(ends.low)} to {speak(ends.high)})" if ends and _is_closed(ends) else ""
    rank = "" if score.rank is None else f", rank {score.rank}{'=' if score.shared else ''}"
    return f"{verdict.BOUND_SIGNS[score.bound or '']}{speak(score.value)}{mark}{interval}{rank}"


def _is_closed(interval: Interval) -> bool:
    return math.isfinite(interval.low) and math.isfinite(interval.high)


def _tabulate_comparisons(axis: AxisEntry) -> str:
    lines = [
        (
            f"{comparison.a} / {comparison.b}",
            f"{comparison.ratio:.4g}" if math.isfinite(comparison.ratio) else DASH,
            ranking.format_change_interval(ends) if (ends := comparison.interval) and _is_closed(ends) else DASH,
            "yes" if comparison.different else "",
        )
        for comparison in axis.comparisons
    ]
    return _tabulate((f"{axis.metric} of", "ratio", "interval", "different"), lines) if lines else ""


def _tabulate(headings: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    head, *rows = (" | ".join(map(harmless_markdown, line)) for line in (headings, *lines))
    return "\n".join(f"| {row} |" for row in (head, " | ".join("---" for _ in headings), *rows))
