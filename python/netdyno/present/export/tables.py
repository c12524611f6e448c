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
"""Of which a row has those that its table has (protocol/export.md); the others are empty."""
Row = Mapping[str, object]
WORK = {"bytes-in": "bytes_in", "bytes-out": "bytes_out", "packets": "packets", "softirq": "softirq_ns"}
FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""What begins so may be one to a spreadsheet, which skips a tab."""


def as_csv(export: Export) -> str:
    """With the line ends of RFC 4180."""
    page = io.StringIO(newline="")
    writer = csv.DictWriter(page, COLUMNS, restval="")
    writer.writeheader()
    writer.writerows({key: _cell(value) for key, value in row.items()} for row in rows(export))
    return page.getvalue()


def _cell(value: object) -> object:
    """Numbers with all their digits; a text that a spreadsheet would take for a formula gets a space before it."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    return f" {value}" if isinstance(value, str) and value[:1] in FORMULA else value


def rows(export: Export) -> Iterator[Row]:
    found = export.findings
    for question in found["questions"]:
        name = question["name"]
        yield {"table": "verdict", "question": name, "status": question["verdict"], "text": question["sentence"]}
        for axis in question["axes"]:
            yield from _axis(name, question["figures_at"], axis)
        for row in _behind(question):
            yield {"question": name, **row}
    for claim in found["claims"]:
        yield {"table": "claim", "question": claim["id"], "status": claim["verdict"], "text": claim["reason"]}
    for line in (found["gate"] or {"lines": ()})["lines"]:
        low, high = line["interval"] or (None, None)
        about = {"question": line["question"], "metric": line["metric"], "status": line["outcome"], "unit": "ratio"}
        yield {"table": "gate", **about, "value": line["ratio"], "low": low, "high": high, "count": line["blocks"]}
    for flip in found["flips"]:
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
            told = level["better"] or "open"
            yield {
                "table": "flip level",
                **about,
                **ratio,
                "level": f"{flip['factor']}={level['at']:g}",
                "status": told,
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


def _behind(question: Mapping[str, Any]) -> Iterator[Row]:
    """What stands behind a ranking."""
    for curve in (question["capacity"] or {"curves": ()})["curves"]:
        about = {"level": curve["level"], "contestant": curve["contestant"], "unit": "messages/s"}
        bound = "at least" if curve["at_least"] else "at most" if curve["below"] else ""
        figure = {"value": curve["capacity_hz"], "count": curve["blocks"], "status": bound}
        yield {"table": "capacity", "metric": "capacity", **about, **figure}
        yield {"table": "capacity", "metric": "knee", **about, "value": curve["knee_hz"]}
        for point in curve["points"]:
            told = f"{point['held']} held, {point['failed']} failed, {point['silent']} not counted"
            at = {"level": f"rate={point['rate_hz']:.10g}", "contestant": curve["contestant"], "text": told}
            for metric, key in (("p50", "p50_ns"), ("p99", "p99_ns"), ("p99.9", "p999_ns")):
                yield {"table": "rate", **at, "metric": metric, "unit": "ns", "value": point[key]}
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


def _axis(question: str, level: str | None, axis: Mapping[str, Any]) -> Iterator[Row]:
    for score in axis["scores"]:
        low, high = score["interval"] or (None, None)
        about = {"question": question, "level": level, "contestant": score["contestant"], "rank": score["rank"]}
        about |= {"ground": score["ground"]}
        figure = {"metric": axis["metric"], "unit": axis["unit"], "value": score["value"], "low": low, "high": high}
        yield {"table": "ranking", **about, **figure, "count": score["trials"], "status": score["bound"]}
    for one in axis["comparisons"]:
        low, high = one["interval"] or (None, None)
        about = {"question": question, "contestant": one["a"], "against": one["b"], "metric": axis["metric"]}
        told = "different" if one["different"] else "open" if one["decidable"] else "not enough blocks"
        ratio = {"unit": "ratio", "value": one["ratio"], "low": low, "high": high, "count": one["blocks"]}
        yield {"table": "comparison", **about, **ratio, "status": told}


# --- Markdown ---------------------------------------------------------------------------------------------------------


def as_markdown(export: Export) -> str:
    """What a person reads: verdicts, rankings, comparisons, claims and notes. Of the trials only how many."""
    found = export.findings
    counts = ", ".join(f"{count} {name.replace('_', ' ')}" for name, count in found["trials"].items())
    parts = [
        f"# {escaped(found['experiment'])}",
        escaped(found["question"]),
        f"Run {escaped(found['run_id'])}; trials: {counts}.",
    ]
    for question in found["questions"]:
        parts += [
            f"## {escaped(question['name'])}",
            f"**{escaped(question['headline'])}.** {escaped(question['sentence'])}",
        ]
        parts += [_ranking(question), *map(_comparisons, question["axes"])]
        notes = [one.text for one in export.notes if one.question == question["name"]]
        parts.append("\n".join(f"* {escaped(note)}" for note in notes))
    if found["claims"]:
        told = [(one["id"], one["verdict"], one["reason"]) for one in found["claims"]]
        parts += ["## Claims", _table(("claim", "verdict", "reason"), told)]
    general = [one.text for one in export.notes if one.question is None]
    parts += ["## About the run", "\n".join(f"* {escaped(note)}" for note in general)]
    return "\n\n".join(part for part in parts if part) + "\n"


def _ranking(question: Mapping[str, Any]) -> str:
    """A table for each ground: nobody is ranked with those of another."""
    grounds = dict.fromkeys(one["ground"] for one in question["contestants"])
    return "\n\n".join(_ranking_on(question, ground, several=len(grounds) > 1) for ground in grounds)


def _ranking_on(question: Mapping[str, Any], ground: int, *, several: bool) -> str:
    axes = question["axes"]
    mark = company.MARK if question["company"] else ""
    names = [one["name"] for one in question["contestants"] if one["ground"] == ground]
    by_name = [{score["contestant"]: score for score in axis["scores"]} for axis in axes]
    lines = [
        (name, *(_score(axis["metric"], scores.get(name), mark) for axis, scores in zip(axes, by_name, strict=True)))
        for name in names
    ]
    if not names or not axes:
        return ""
    heading = f"On {ground_words.usable_words(question['ground']['together'][ground]['cores'])}:\n\n" if several else ""
    return heading + _table(("contestant", *(axis["metric"] for axis in axes)), lines)


def _score(metric: str, score: Mapping[str, Any] | None, mark: str) -> str:
    """The figure with its mark, its interval, and the rank."""
    if score is None or score["value"] is None:
        return DASH
    speak = METRICS[metric].speak
    low, high = score["interval"] or (None, None)
    interval = f" ({speak(low)} to {speak(high)})" if low is not None and high is not None else ""
    rank = "" if score["rank"] is None else f", rank {score['rank']}{'=' if score['shared'] else ''}"
    return f"{verdict.BOUND_SIGNS[score['bound'] or '']}{speak(score['value'])}{mark}{interval}{rank}"


def _comparisons(axis: Mapping[str, Any]) -> str:
    lines = [
        (
            f"{one['a']} / {one['b']}",
            f"{one['ratio']:.4g}",
            _interval(one["interval"]),
            "yes" if one["different"] else "",
        )
        for one in axis["comparisons"]
    ]
    return _table((f"{axis['metric']} of", "ratio", "interval", "different"), lines) if lines else ""


def _interval(found: Sequence[float | None] | None) -> str:
    if found is None or found[0] is None or found[1] is None:
        return DASH
    return ranking.change_interval(Interval(found[0], found[1]))


def _table(headings: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    rule = tuple("---" for _ in headings)
    return "\n".join(f"| {' | '.join(map(escaped, line))} |" for line in (headings, rule, *lines))


def escaped(text: str) -> str:
    """What somebody else wrote is one line, and no mark-up."""
    for sign in "\\|`*[]":
        text = text.replace(sign, f"\\{sign}")
    return " ".join(text.replace("<", "&lt;").split())
