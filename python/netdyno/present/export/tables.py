"""An export as one table in CSV, a row a figure, and as a page of Markdown."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from netdyno.base.quantities import DASH
from netdyno.model.metrics import METRICS
from netdyno.present.export.schema import Export
from netdyno.present.prose import company, ranking, verdict
from netdyno.present.prose import ground as ground_words
from netdyno.statistics.stats import Interval

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
Row = Mapping[str, object]
WORK = {"bytes-in": "bytes_in", "bytes-out": "bytes_out", "packets": "packets", "softirq": "softirq_ns"}
FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""A text with such a beginning may be a formula to a spreadsheet, which skips a tab."""


def format_csv(export: Export) -> str:
    """Write an export as CSV with the line ends of RFC 4180."""
    page = io.StringIO(newline="")
    writer = csv.DictWriter(page, COLUMNS, restval="")
    writer.writeheader()
    writer.writerows({key: _convert_value(value) for key, value in row.items()} for row in list_rows(export))
    return page.getvalue()


def _convert_value(value: object) -> object:
    """Return numbers with all their digits; a text that a spreadsheet may take for a formula gets a leading space."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    return f" {value}" if isinstance(value, str) and value[:1] in FORMULA else value


def list_rows(export: Export) -> Iterator[Row]:
    findings = export.findings
    for question in findings["questions"]:
        name = question["name"]
        yield {"table": "verdict", "question": name, "status": question["verdict"], "text": question["sentence"]}
        for axis in question["axes"]:
            yield from _list_axis(name, question["figures_at"], axis)
        for row in _list_details(question):
            yield {"question": name, **row}
    for claim in findings["claims"]:
        yield {"table": "claim", "question": claim["id"], "status": claim["verdict"], "text": claim["reason"]}
    for line in (findings["gate"] or {"lines": ()})["lines"]:
        low, high = line["interval"] or (None, None)
        about = {"question": line["question"], "metric": line["metric"], "status": line["outcome"], "unit": "ratio"}
        yield {"table": "gate", **about, "value": line["ratio"], "low": low, "high": high, "count": line["blocks"]}
    for flip in findings["flips"]:
        about = {"question": flip["question"], "metric": flip["metric"], "contestant": flip["first"]}
        about |= {"against": flip["second"], "status": flip["verdict"]}
        crossings = flip["crossings"] or [{"at": None, "interval": (None, None)}]
        for crossing in crossings:
            low, high = crossing["interval"]
            place = {"level": flip["factor"], "value": crossing["at"], "low": low, "high": high}
            yield {"table": "flip", **about, **place, "unit": flip["unit"], "text": flip["sentence"]}
        for level in flip["levels"]:
            low, high = level["interval"] or (None, None)
            ratio = {"unit": "ratio", "value": level["ratio"], "low": low, "high": high, "count": level["blocks"]}
            better = level["better"] or "open"
            yield {
                "table": "flip level",
                **about,
                **ratio,
                "level": f"{flip['factor']}={level['at']:g}",
                "status": better,
            }
    for cell in export.cells:
        about = {"question": cell.question, "level": cell.level, "contestant": cell.contestant, "count": cell.trials}
        for name, figure in cell.figures.items():
            unit = export.metrics[name].unit
            interval = {"value": figure.value, "low": figure.low, "high": figure.high}
            yield {"table": "cell", **about, "metric": name, "unit": unit, **interval}
    for trial in export.trials:
        about = {"question": trial.question, "level": trial.level, "contestant": trial.contestant}
        place = {"block": trial.block, "attempt": trial.attempt, "twin": trial.twin, "status": trial.status}
        if not trial.figures:
            yield {"table": "trial", **about, **place, "text": trial.reason}
        for name, value in trial.figures.items():
            unit = export.metrics[name].unit
            yield {"table": "trial", **about, **place, "metric": name, "unit": unit, "value": value}
    for note in export.notes:
        yield {"table": "note", "question": note.question, "status": note.kind, "text": note.text}


def _list_details(question: Mapping[str, Any]) -> Iterator[Row]:
    """List the capacities, pairs, work and unsafe servers of a question."""
    for curve in (question["capacity"] or {"curves": ()})["curves"]:
        about = {"level": curve["level"], "contestant": curve["contestant"], "unit": "messages/s"}
        bound = "at least" if curve["at_least"] else "at most" if curve["below"] else ""
        figure = {"value": curve["capacity_hz"], "count": curve["blocks"], "status": bound}
        yield {"table": "capacity", "metric": "capacity", **about, **figure}
        yield {"table": "capacity", "metric": "knee", **about, "value": curve["knee_hz"]}
        for point in curve["points"]:
            outcomes = f"{point['held']} held, {point['failed']} failed, {point['silent']} not counted"
            about_rate = {"level": f"rate={point['rate_hz']:.10g}", "contestant": curve["contestant"], "text": outcomes}
            for metric, key in (("p50", "p50_ns"), ("p99", "p99_ns"), ("p99.9", "p999_ns")):
                yield {"table": "rate", **about_rate, "metric": metric, "unit": "ns", "value": point[key]}
    for pair in question["pairs"]:
        both = {"contestant": pair["contestant"], "against": pair["client"], "text": ", ".join(pair["statuses"])}
        figure = {"metric": question["metric"], "value": pair["figure"], "count": pair["valid"]}
        yield {"table": "pair", **both, **figure, "unit": METRICS[question["metric"]].unit.name}
    for work in question["work"]:
        for metric, key in WORK.items():
            low, high = (work[key] or {"interval": None})["interval"] or (None, None)
            about = {"contestant": work["contestant"], "level": work["level"], "metric": metric}
            figure = {"value": (work[key] or {"value": None})["value"], "low": low, "high": high}
            yield {"table": "work", **about, **figure, "unit": METRICS[metric].unit.name}
        traced = work["traced"] or {"calls": (), "messages": 0}
        for call in traced["calls"] if traced["messages"] else ():
            about = {"contestant": work["contestant"], "level": work["level"], "unit": "1/message"}
            yield {"table": "work", **about, "metric": call["name"], "value": call["calls"] / traced["messages"]}
    for unsafe in question["unsafe"]:
        about = {"contestant": unsafe["contestant"], "level": unsafe["level"], "text": unsafe["why"]}
        for name in ("wrong", "expected", "lost", "duplicated", "reordered", "corrupt", "streams"):
            yield {"table": "unsafe", **about, "metric": name, "value": unsafe[name], "count": unsafe["trials"]}


def _list_axis(question: str, level: str | None, axis: Mapping[str, Any]) -> Iterator[Row]:
    for score in axis["scores"]:
        low, high = score["interval"] or (None, None)
        about = {"question": question, "level": level, "contestant": score["contestant"], "rank": score["rank"]}
        about |= {"ground": score["ground"]}
        figure = {"metric": axis["metric"], "unit": axis["unit"], "value": score["value"], "low": low, "high": high}
        yield {"table": "ranking", **about, **figure, "count": score["trials"], "status": score["bound"]}
    for comparison in axis["comparisons"]:
        low, high = comparison["interval"] or (None, None)
        about = {
            "question": question,
            "contestant": comparison["a"],
            "against": comparison["b"],
            "metric": axis["metric"],
        }
        status = "different" if comparison["different"] else "open" if comparison["decidable"] else "not enough blocks"
        ratio = {"unit": "ratio", "value": comparison["ratio"], "low": low, "high": high, "count": comparison["blocks"]}
        yield {"table": "comparison", **about, **ratio, "status": status}


# --- Markdown ---------------------------------------------------------------------------------------------------------


def format_markdown(export: Export) -> str:
    """Write what a person reads: verdicts, rankings, comparisons, claims and notes; of the trials only their number."""
    findings = export.findings
    counts = ", ".join(f"{count} {name.replace('_', ' ')}" for name, count in findings["trials"].items())
    parts = [
        f"# {escape_markup(findings['experiment'])}",
        escape_markup(findings["question"]),
        f"Run {escape_markup(findings['run_id'])}; trials: {counts}.",
    ]
    for question in findings["questions"]:
        parts += [
            f"## {escape_markup(question['name'])}",
            f"**{escape_markup(question['headline'])}.** {escape_markup(question['sentence'])}",
        ]
        parts += [_tabulate_ranking(question), *map(_tabulate_comparisons, question["axes"])]
        notes = [note.text for note in export.notes if note.question == question["name"]]
        parts.append("\n".join(f"* {escape_markup(note)}" for note in notes))
    if findings["claims"]:
        claims = [(claim["id"], claim["verdict"], claim["reason"]) for claim in findings["claims"]]
        parts += ["## Claims", _tabulate(("claim", "verdict", "reason"), claims)]
    general = [note.text for note in export.notes if note.question is None]
    parts += ["## About the run", "\n".join(f"* {escape_markup(note)}" for note in general)]
    return "\n\n".join(part for part in parts if part) + "\n"


def _tabulate_ranking(question: Mapping[str, Any]) -> str:
    """Draw a table for each group that is ranked together."""
    grounds = dict.fromkeys(contestant["ground"] for contestant in question["contestants"])
    return "\n\n".join(_tabulate_group(question, ground, is_divided=len(grounds) > 1) for ground in grounds)


def _tabulate_group(question: Mapping[str, Any], ground: int, *, is_divided: bool) -> str:
    axes = question["axes"]
    mark = company.MARK if question["company"] else ""
    names = [contestant["name"] for contestant in question["contestants"] if contestant["ground"] == ground]
    by_name = [{score["contestant"]: score for score in axis["scores"]} for axis in axes]
    lines = [
        (
            name,
            *(
                _format_score(axis["metric"], scores.get(name), mark)
                for axis, scores in zip(axes, by_name, strict=True)
            ),
        )
        for name in names
    ]
    if not names or not axes:
        return ""
    heading = (
        f"On {ground_words.describe_usable_cores(question['ground']['together'][ground]['cores'])}:\n\n"
        if is_divided
        else ""
    )
    return heading + _tabulate(("contestant", *(axis["metric"] for axis in axes)), lines)


def _format_score(metric: str, score: Mapping[str, Any] | None, mark: str) -> str:
    """Return the figure with its mark, its interval, and the rank."""
    if score is None or score["value"] is None:
        return DASH
    speak = METRICS[metric].speak
    low, high = score["interval"] or (None, None)
    interval = f" ({speak(low)} to {speak(high)})" if low is not None and high is not None else ""
    rank = "" if score["rank"] is None else f", rank {score['rank']}{'=' if score['shared'] else ''}"
    return f"{verdict.BOUND_SIGNS[score['bound'] or '']}{speak(score['value'])}{mark}{interval}{rank}"


def _tabulate_comparisons(axis: Mapping[str, Any]) -> str:
    lines = [
        (
            f"{comparison['a']} / {comparison['b']}",
            f"{comparison['ratio']:.4g}",
            _format_interval(comparison["interval"]),
            "yes" if comparison["different"] else "",
        )
        for comparison in axis["comparisons"]
    ]
    return _tabulate((f"{axis['metric']} of", "ratio", "interval", "different"), lines) if lines else ""


def _format_interval(ends: Sequence[float | None] | None) -> str:
    if ends is None or ends[0] is None or ends[1] is None:
        return DASH
    return ranking.format_change_interval(Interval(ends[0], ends[1]))


def _tabulate(headings: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    rule = tuple("---" for _ in headings)
    return "\n".join(f"| {' | '.join(map(escape_markup, line))} |" for line in (headings, rule, *lines))


def escape_markup(text: str) -> str:
    """Return a text from outside as one line without mark-up."""
    for sign in "\\|`*[]":
        text = text.replace(sign, f"\\{sign}")
    return " ".join(text.replace("<", "&lt;").split())
