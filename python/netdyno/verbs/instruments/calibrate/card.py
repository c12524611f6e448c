"""The card, for people and for programs. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from netdyno.kit import quantities
from netdyno.verbs.instruments.calibrate.others import Other
from netdyno.verbs.instruments.calibrate.running import Attempt, CaseResult
from netdyno.verbs.instruments.calibrate.scores import CalibrationScore

WORTH_TELLING_NS = 1_000_000
"""The least length of a pause of the machine that is reported."""


def render(results: Sequence[CaseResult], others: Sequence[Other], note: str) -> RenderableType:
    """Show each property with its truth, the reading, its error, and the verdict; other generators beside it."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1), collapse_padding=True, show_edge=False)
    # With a least width instead, Rich makes room in this column first, then gives it back and cuts off the last ones.
    table.add_column("property", overflow="fold", width=22 if others else None)
    for heading in ("truth", "netdyno", "error", "service"):
        table.add_column(heading, justify="right", overflow="fold")
    table.add_column("")
    for generator in others:
        table.add_column(generator.name, justify="right", overflow="fold")
    for result in results:
        _add_rows(table, result, others)
    parts: list[RenderableType] = [
        table,
        Text(),
        *_list_repeated(results),
        Text(_explain_columns(), style="dim"),
        Text(note),
    ]
    parts += [*_describe_pauses(results), _summarise(results)]
    return Group(*parts)


def _add_rows(table: Table, result: CaseResult, others: Sequence[Other]) -> None:
    table.add_row(Text(result.case, style="bold"))
    last = result.attempts[-1]
    if last.failure:
        table.add_row(Text(f"  {last.failure}", style="red"), "", "", "", "", _format_verdict(False))
    for score in last.scores:
        cells = [_format_other(generator, f"{result.case}: {score.name}", score) for generator in others]
        table.add_row(
            f"  {score.name}", _format_truth(score), _format_value(score, score.measured), format_error(score),
            _format_service(score), _format_verdict(score.passed) if score.has_bound else "", *cells,
        )  # fmt: skip


def _format_verdict(passed: bool) -> Text:
    return Text("ok", style="green") if passed else Text("FAILS", style="bold red")


def _format_value(score: CalibrationScore, value: float) -> str:
    match score.unit:
        case "ns":
            return quantities.duration(value)
        case "hz":
            return f"{value:,.0f}/s"
        case "count":
            return f"{value:,.0f}"
        case "share":
            return f"{value:.3f}"
        case "statistic":
            return f"{value:.2f}" if value < 100 else f"{value:,.0f}"


def _format_truth(score: CalibrationScore) -> str:
    if score.rule == "part":
        return "" if score.most is None else f"0 to {_format_value(score, score.most)}"
    sign = {"at most": "≤ ", "at least": "≥ "}.get(score.rule, "")
    return f"{sign}{_format_value(score, score.truth)}"


def format_error(score: CalibrationScore) -> str:
    """Format the error in per cent of the truth, or in messages; for a delay that is only stated, also as a time."""
    off = score.error
    if off is None:
        return ""
    if score.rule == "part":
        return f"{off:.1%}"
    if score.rule == "stated":
        return f"{off:+.1%}, {quantities.duration(score.measured - score.truth)}"
    return f"{off:+,.0f}" if score.rule == "exactly" else f"{100 * off:+.2f}%"


def _format_service(score: CalibrationScore) -> str:
    return quantities.duration(score.service) if score.service is not None else ""


def _format_other(generator: Other, name: str, own: CalibrationScore) -> Text:
    """Format the other generator's reading of the same property, with its own truth where its window differed."""
    score = next((candidate for candidate in generator.scores if candidate.name == name), None)
    if score is None:
        return Text("")
    truth = "" if abs(score.truth - own.truth) <= 0.005 * own.truth else f" of {_format_value(score, score.truth)}"
    style = "" if score.passed else "red"
    return Text(f"{_format_value(score, score.measured)}{truth} ({format_error(score)})", style=style)


def _list_repeated(results: Sequence[CaseResult]) -> list[Text]:
    """List every try that did not pass and was followed by another."""
    return [
        Text(f"{result.case}, try {number} of {len(result.attempts)}: {_describe_failed(attempt)}", style="yellow")
        for result in results
        for number, attempt in enumerate(result.attempts[:-1], 1)
    ]


def _describe_failed(attempt: Attempt) -> str:
    if attempt.failure:
        return attempt.failure
    return "; ".join(
        f"{score.name} {_format_value(score, score.measured)} for {_format_truth(score)}"
        for score in attempt.scores
        if not score.passed
    )


def _describe_pauses(results: Sequence[CaseResult]) -> list[Text]:
    """Describe the long pauses of the machine in the attempts that count."""
    pauses = [pause for result in results for pause in result.attempts[-1].pauses if pause.ns >= WORTH_TELLING_NS]
    places = []
    for core in sorted({pause.core for pause in pauses}):
        lengths = [pause.ns for pause in pauses if pause.core == core]
        times = quantities.plural(len(lengths), "time")
        places.append(f"{times} on the core of the {core}, for up to {quantities.duration(max(lengths))}")
    if not places:
        return []
    text = (
        f"The machine let nothing run for {quantities.duration(WORTH_TELLING_NS)} or more: {quantities.listed(places)}."
    )
    return [Text(text, style="yellow")]


def _explain_columns() -> str:
    return (
        "truth: what the server did to the same messages, pauses of the machine included, as a perfect client would "
        "measure; or S - (1-q)T for a stall of S in a window of T. Times are within 2%, rates within 1%, counts "
        "exact, A² (Anderson-Darling) below its value at the 1% level. service: from the actual send, at the same "
        "percentile. For a delay of 50 µs the error is stated as a share and as a time, with its parts: the two lags "
        "are the generator's own; every client also measures the server's wake-up and the kernel's part."
    )


def _summarise(results: Sequence[CaseResult]) -> Text:
    failed = [result.case for result in results if not result.passed]
    retried = sum(len(result.attempts) > 1 for result in results)
    if failed:
        text = f"{quantities.plural(len(failed), 'case')} of {len(results)} failed: {quantities.listed(failed)}"
        return Text(text, style="bold red")
    repeats = f", {retried} of them not at the first try" if retried else ""
    return Text(f"all {len(results)} cases passed{repeats}", style="bold green")


def as_json(results: Sequence[CaseResult], others: Sequence[Other], pinning: str) -> dict[str, object]:
    """The card with every attempt, for programs. Times in ns."""
    return {
        "passed": all(result.passed for result in results),
        "pinning": pinning,
        "cases": [
            {
                "name": result.case,
                "about": result.about,
                "passed": result.passed,
                "attempts": [
                    {
                        "failure": attempt.failure,
                        "scores": [_score_json(score) for score in attempt.scores],
                        "pauses": [
                            {"core": pause.core, "began_ns": pause.began_ns, "ns": pause.ns} for pause in attempt.pauses
                        ],
                    }
                    for attempt in result.attempts
                ],
            }
            for result in results
        ],
        "others": [
            {"name": generator.name, "scores": [_score_json(score) for score in generator.scores]}
            for generator in others
        ],
    }


def _score_json(score: CalibrationScore) -> dict[str, object]:
    fields = {name: getattr(score, name) for name in score.__struct_fields__}
    return {**fields, "error": score.error, "passed": score.passed}
