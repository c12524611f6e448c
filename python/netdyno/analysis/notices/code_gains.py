"""What more code gains: in each question the servers against the one with the fewest lines. Pure functions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from netdyno.analysis.found.notices import CodeGain
from netdyno.analysis.found.run import ScenarioFindings
from netdyno.analysis.ranking.answers import find_comparison
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
    for name in measured:
        pair = (name, measured[0]) if findings.better == "higher" else (measured[0], name)
        comparison = find_comparison(*pair, findings.comparisons)
        if comparison is not None or name == measured[0]:
            yield CodeGain(
                question=findings.scenario.name,
                metric=findings.scenario.metric,
                contestant=name,
                lines=sizes[name].lines,
                complexity=sizes[name].complexity,
                gain=comparison.ratio if comparison else 1.0,
                interval=comparison.interval if comparison else None,
                different=comparison is not None and comparison.different,
            )
