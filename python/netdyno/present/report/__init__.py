"""The report of a run: one HTML file that needs nothing else, offline, light and dark, on a phone, by keyboard."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import NamedTuple

from markupsafe import Markup

from netdyno.analysis.analysis import analyse
from netdyno.analysis.findings import Analysis, TrialNote
from netdyno.analysis.run_comparison import SideBySide
from netdyno.base import quantities
from netdyno.base.files import write_whole
from netdyno.model.run import Run
from netdyno.present import templates
from netdyno.present.export.collect import collect
from netdyno.present.prose import environment as surroundings
from netdyno.present.prose import loss, repeat, set_aside, verdict, verdicts
from netdyno.present.report import (
    capacity,
    charts,
    control,
    everything,
    flips,
    machine,
    overlay,
    panels,
    styles,
    theme,
    timeline,
    views,
)

HERE = Path(__file__).resolve().parent
MOST_NOTES = 20
"""Trials told one by one per cause; a run in which everything fails must still give a page of two megabytes at most."""
LOG_TAIL = 1500
"""Characters of a trial's log in the page, its end; the whole log is stored with the run."""


class Overlaid(NamedTuple):
    """A further run on a page, and what changed since the first."""

    analysis: Analysis
    changes: SideBySide


def write(run: Run, path: Path) -> None:
    """Analyse a run and write its report, as `write_page` does."""
    write_page(analyse(run), path)


def write_page(analysis: Analysis, path: Path, over: Sequence[Overlaid] = ()) -> None:
    """Write the page to `path`: a reader sees the old file or the whole new one. Raises OSError."""
    write_whole(path, html(analysis, over))


def html(analysis: Analysis, over: Sequence[Overlaid] = ()) -> str:
    """The page of a run, with further ones laid over it. The same findings give the same text."""
    runs = [analysis, *(one.analysis for one in over)]
    drawn_too = [name for chart in analysis.charts for name in chart.unsafe]
    elsewhere = [name for one in runs for name in one.contestants]
    looks = theme.looks(list(dict.fromkeys([*analysis.contestants, *drawn_too, *elsewhere])))
    all_looks = theme.of_runs(looks, len(runs))
    environment = templates.of(HERE)
    environment.filters["groupby_reason"] = _by_reason
    environment.filters["reason"] = set_aside.reason
    environment.filters["pinning"] = surroundings.pinning
    environment.filters["entry"] = surroundings.entry
    environment.filters["share"] = quantities.share
    page = environment.get_template("page.html.j2").render(
        analysis=analysis,
        links=quantities.listed(analysis.links),
        windows=quantities.listed([quantities.duration(1e9 * window) for window in analysis.windows_s]),
        scenarios=[views.view(one, looks, number) for number, one in enumerate(analysis.scenarios, 1)],
        capacities=[capacity.view(one, looks, f"s{number}") for number, one in enumerate(analysis.scenarios, 1)],
        claims=views.claims(analysis.claims, analysis.scenarios),
        verdicts=verdicts.summary(analysis.claims),
        looks=looks,
        code=views.code(analysis.about),
        shapes=theme.SHAPES,
        ring_path=theme.RING,
        heat_steps=theme.HEAT_STEPS,
        published_path=theme.PUBLISHED,
        charts=[charts.view(one, looks, f"f{number}") for number, one in enumerate(analysis.charts, 1)],
        flips=[flips.view(one, looks, f"flip{number}") for number, one in enumerate(analysis.flips, 1)],
        control=control.view(analysis.control),
        machine=machine.view(analysis.canary),
        again=machine.again(analysis.made_again),
        audits=views.audits(analysis.audits),
        commands=repeat.commands(analysis),
        what_holds=verdict.WHAT_HOLDS,
        status_words=verdict.STATUS_WORDS,
        mark_sign=loss.MARK,
        light=Markup(theme.style_variables(theme.LIGHT, theme.HEAT_LIGHT)),
        dark=Markup(theme.style_variables(theme.DARK, theme.HEAT_DARK)),
        style=_file("vendor/uPlot.min.css") + _file("page.css"),
        script=_file("vendor/uPlot.iife.min.js") + Markup("\n") + _file("tools.js") + Markup("\n") + _file("page.js"),
        data=_data(analysis, looks),
        overlay=overlay.view(runs, [one.changes for one in over], all_looks) if over else None,
        all_figures=_all_figures(runs, all_looks),
        own_variables=Markup(theme.own_variables(all_looks)),
        uplot_licence=_file("vendor/uPlot.LICENSE"),
        most_sweeps=panels.MOST_SWEEPS,
        most_notes=MOST_NOTES,
        log_tail=LOG_TAIL,
    )
    return styles.shared(page)


def _by_reason(notes: Sequence[TrialNote]) -> list[tuple[tuple[str, str, str], list[TrialNote]]]:
    """Trials of a contestant set aside for the same cause stand together, in the order of their first."""
    groups: dict[tuple[str, str, str], list[TrialNote]] = {}
    for note in notes:
        groups.setdefault((note.status, note.contestant, set_aside.cause(note.cause)), []).append(note)
    return list(groups.items())


def _file(name: str) -> Markup:
    """A file of this package, as it is: our own text and vendored code, nothing from a run."""
    return Markup((HERE / name).read_text(encoding="utf-8"))


def _data(analysis: Analysis, looks: dict[str, theme.Look]) -> Markup:
    """What the script draws."""
    contestants = [
        {"name": name, "colour": f"--k{look.number}", "path": theme.SHAPES[look.shape].path}
        for name, look in looks.items()
    ]
    series = {name: [asdict(level) for level in levels] for name, levels in timeline.traces(analysis).items()}
    told = {"contestants": contestants, "scenarios": series, "ring": theme.RING, "mark": loss.MARK}
    return _json(told)


def _all_figures(runs: Sequence[Analysis], looks: Sequence[Mapping[str, theme.Look]]) -> Markup:
    """What the reader filters by, and every figure."""
    sources = [
        everything.Source(
            run=one.run_id,
            export=collect(one),
            workloads={each.scenario.name: each.scenario.workload for each in one.scenarios},
            labels={(each.scenario.name, level.key): level.label for each in one.scenarios for level in each.levels},
        )
        for one in runs
    ]
    names = {
        "run": [one.run for one in sources],
        "workload": list(dict.fromkeys(name for one in sources for name in one.workloads.values())),
        "contestant": list(looks[0]),
        "level": list(dict.fromkeys(label for one in sources for label in one.labels.values())),
    }
    drawn = [
        (look.number, name, source.run, theme.SHAPES[look.shape].path)
        for source, own in zip(sources, looks, strict=True)
        for name, look in own.items()
    ]
    sheets = {name: asdict(sheet) for name, sheet in everything.sheets(sources).items()}
    return _json({"looks": drawn, "names": names, "sheets": sheets})


def _json(value: object) -> Markup:
    """JSON that cannot end its own script element."""
    text = json.dumps(_all_seen(value), separators=(",", ":"), allow_nan=False)
    return Markup(text.replace("<", "\\u003c"))


def _all_seen(value: object) -> object:
    if isinstance(value, dict):
        return {templates.seen(key): _all_seen(each) for key, each in value.items()}
    return [_all_seen(each) for each in value] if isinstance(value, list | tuple) else templates.seen(value)
