"""What more code gains: in each question the servers against the one with the fewest lines. Pure functions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from netdyno.analysis.found.notices import CodeGain
from netdyno.analysis.found.run import ScenarioFindings
from netdyno.analysis.ranking.answers import find_comparison
from netdyno.kit.statistics.stats import Interval
from netdyno.model.contestant import About, CodeSize
from netdyno.question.contestants import codesize


def derive_code_gains(scenarios: Sequence[ScenarioFindings], about: Sequence[About]) -> tuple[CodeGain, ...]:
    """Return each server that was compared with the one of the fewest lines in its question; that one is first. None
    where a question compares servers of one length."""
    sizes = {
        program.name: size
        for program in about
        if program.kind == "server" and (size := codesize.sum_with_family(program, about)) is not None
    }
    return tuple(gain for findings in scenarios for gain in _list_gains(findings, sizes))


def _list_gains(findings: ScenarioFindings, sizes: Mapping[str, CodeSize]) -> Iterator[CodeGain]:
    measured = sorted(
        (standing.contestant for standing in findings.standings if standing.contestant in sizes),
        key=lambda name: (sizes[name].lines, name),
    )
    if len({sizes[name].lines for name in measured}) < 2:
        return
    yield _describe(findings, measured[0], sizes[measured[0]], gain=1.0)
    for name in measured[1:]:
        pair = (name, measured[0]) if findings.better == "higher" else (measured[0], name)
        if (comparison := find_comparison(*pair, findings.comparisons)) is not None:
            yield _describe(
                findings,
                name,
                sizes[name],
                gain=comparison.ratio,
                interval=comparison.interval,
                different=comparison.different,
            )


def _describe(
    findings: ScenarioFindings,
    name: str,
    size: CodeSize,
    *,
    gain: float,
    interval: Interval | None = None,
    different: bool = False,
) -> CodeGain:
    return CodeGain(
        question=findings.scenario.name,
        metric=findings.scenario.metric,
        contestant=name,
        lines=size.lines,
        complexity=size.complexity,
        gain=gain,
        interval=interval,
        different=different,
    )
