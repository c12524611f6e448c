"""The report of a run: one HTML file that needs nothing else, offline, light and dark, on a phone, by keyboard."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import NamedTuple

from markupsafe import Markup
from msgspec.structs import replace

from netdyno.analysis.analysis import analyse
from netdyno.analysis.findings import Analysis, TrialNote
from netdyno.analysis.run_comparison import SideBySide
from netdyno.base import quantities
from netdyno.base.files import write_whole
from netdyno.model.profile import Profiled
from netdyno.model.run import Run
from netdyno.present import profile, templates
from netdyno.present.export.collect import collect
from netdyno.present.prose import environment as surroundings
from netdyno.present.prose import loss, repeat, set_aside, verdict, verdicts
from netdyno.present.prose import profile as profile_prose
from netdyno.present.prose.statuses import STATUS_WORDS
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
from netdyno.store.profiles import Stored

HERE = Path(__file__).resolve().parent
MOST_NOTES = 20
"""Trials told one by one per cause; a run in which everything fails must still give a page of two megabytes at most."""
SCRIPTS = (HERE / "vendor" / "uPlot.iife.min.js", HERE / "tools.js", HERE / "page.js")
MOST_OF_PAGE = 4 * 2**20
"""Bytes. Flame graphs and the trials one by one have what the rest leaves of them."""
MOST_OF_PROFILES = 1_000_000
"""Characters of flame graphs in a page, however many there are and however much room there is."""
NO_ROOM = "The page has no room for flame graphs: ./netdyno profile draws them on a page of their own."
PROFILES_HERE, FIGURES_HERE = Markup("\0profiles"), Markup("\0figures")
"""Where they go, once it is known how much room there is: nothing else on a page has such a character."""
FOR_TITLE = 200
"""Bytes for the title of a table that is cut."""
NO_PROFILES = Stored()
LOG_TAIL = 1500
"""Characters of a trial's log in the page, its end; the whole log is stored with the run."""


class Overlaid(NamedTuple):
    """A further run on a page, and what changed since the first."""

    analysis: Analysis
    changes: SideBySide


def write(run: Run, path: Path) -> None:
    """Analyse a run and write its report, as `write_page` does."""
    write_page(analyse(run), path)


def write_page(analysis: Analysis, path: Path, over: Sequence[Overlaid] = (), profiled: Stored = NO_PROFILES) -> None:
    """Write the page to `path`: a reader sees the old file or the whole new one. Raises OSError."""
    write_whole(path, html(analysis, over, profiled))


def html(analysis: Analysis, over: Sequence[Overlaid] = (), profiled: Stored = NO_PROFILES) -> str:
    """The page of a run, with its profiles and with further runs laid over it. The same findings give the same text."""
    runs = [analysis, *(one.analysis for one in over)]
    drawn_too = [name for chart in analysis.charts for name in chart.unsafe]
    elsewhere = [name for one in runs for name in one.contestants]
    looks = theme.looks(list(dict.fromkeys([*analysis.contestants, *drawn_too, *elsewhere])))
    all_looks = theme.of_runs(looks, len(runs))
    drawn = _drawn(analysis, over, looks, all_looks)
    found = _all_figures(runs, all_looks)
    asked = _profiled(analysis, profiled)
    page = _page(analysis, drawn, asked, profiled.damaged)
    room = MOST_OF_PAGE - len(page.encode()) - len(_with_rows(found, 0)) - FOR_TITLE
    flames = profile.data(asked, min(MOST_OF_PROFILES, room // 2)) if asked else ""
    if len(flames) > max(room, 0):
        page, flames = _page(analysis, drawn, (), (*profiled.damaged, NO_ROOM)), ""
        room = MOST_OF_PAGE - len(page.encode()) - len(_with_rows(found, 0)) - FOR_TITLE
    return page.replace(PROFILES_HERE, flames).replace(FIGURES_HERE, _with_rows(found, room - len(flames)))


def _drawn(
    analysis: Analysis,
    over: Sequence[Overlaid],
    looks: dict[str, theme.Look],
    all_looks: Sequence[Mapping[str, theme.Look]],
) -> dict[str, object]:
    """What the template has of the figures of a page, which take most of its time: they are drawn once."""
    runs = [analysis, *(one.analysis for one in over)]
    return {
        "scenarios": [views.view(one, looks, number) for number, one in enumerate(analysis.scenarios, 1)],
        "capacities": [capacity.view(one, looks, f"s{number}") for number, one in enumerate(analysis.scenarios, 1)],
        "charts": [charts.view(one, looks, f"f{number}") for number, one in enumerate(analysis.charts, 1)],
        "flips": [flips.view(one, looks, f"flip{number}") for number, one in enumerate(analysis.flips, 1)],
        "machine": machine.view(analysis.canary),
        "overlay": overlay.view(runs, [one.changes for one in over], all_looks) if over else None,
        "own_variables": Markup(theme.own_variables(all_looks)),
        "looks": looks,
        "data": _data(analysis, looks),
    }


def _page(
    analysis: Analysis, drawn: Mapping[str, object], asked: Sequence[Profiled], damaged_profiles: Sequence[str]
) -> str:
    """The page with marks where flame graphs and figures go."""
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
        claims=views.claims(analysis.claims, analysis.scenarios),
        verdicts=verdicts.summary(analysis.claims),
        code=views.code(analysis.about),
        shapes=theme.SHAPES,
        ring_path=theme.RING,
        heat_steps=theme.HEAT_STEPS,
        published_path=theme.PUBLISHED,
        control=control.view(analysis.control),
        again=machine.again(analysis.made_again),
        audits=views.audits(analysis.audits),
        commands=repeat.commands(analysis),
        what_holds=verdict.WHAT_HOLDS,
        status_words=STATUS_WORDS,
        mark_sign=loss.MARK,
        light=Markup(theme.style_variables(theme.LIGHT, theme.HEAT_LIGHT)),
        dark=Markup(theme.style_variables(theme.DARK, theme.HEAT_DARK)),
        style=_file("vendor/uPlot.min.css") + _file("page.css") + (_file(profile.STYLE) if asked else ""),
        script=Markup("\n").join(_file(one) for one in [*SCRIPTS, *([profile.SCRIPT] if asked else [])]),
        profiled={one.question: number for number, one in enumerate(asked)},
        profiled_loads=[one.load for one in asked],
        profiles=PROFILES_HERE,
        profiles_damaged=damaged_profiles,
        what_profiles_are=profile_prose.WHAT_IT_IS,
        all_figures=FIGURES_HERE,
        uplot_licence=_file("vendor/uPlot.LICENSE"),
        most_sweeps=panels.MOST_SWEEPS,
        most_notes=MOST_NOTES,
        log_tail=LOG_TAIL,
        **drawn,
    )
    return styles.shared(page)


def _with_rows(found: AllFigures, room: int) -> Markup:
    """With so many of the trials as there is room for."""
    sheets = {**found.sheets, "trials": everything.fitting(found.sheets["trials"], room)}
    shown = {
        name: {field.name: getattr(sheet, field.name) for field in fields(sheet)} for name, sheet in sheets.items()
    }
    return templates.json_of({"looks": found.looks, "names": found.names, "sheets": shown})


def _by_reason(notes: Sequence[TrialNote]) -> list[tuple[tuple[str, str, str], list[TrialNote]]]:
    """Trials of a contestant set aside for the same cause stand together, in the order of their first."""
    groups: dict[tuple[str, str, str], list[TrialNote]] = {}
    for note in notes:
        groups.setdefault((note.status, note.contestant, set_aside.cause(note.cause)), []).append(note)
    return list(groups.items())


def _profiled(analysis: Analysis, profiled: Stored) -> list[Profiled]:
    """By question, as they stand in the page; their servers in the order of their ranks, that the first two be those
    that are held against each other."""
    by_name = {one.question: one for one in profiled.asked}
    found: list[Profiled] = []
    for one in analysis.scenarios:
        places = {standing.contestant: number for number, standing in enumerate(one.standings)}
        if asked := by_name.get(one.scenario.name):
            ranked = sorted(asked.profiles, key=lambda each: places.get(each.server, len(places)))
            found.append(replace(asked, profiles=tuple(ranked)))
    return found


def _file(name: str | Path) -> Markup:
    """A file of ours, as it is: our own text and vendored code, nothing from a run."""
    return Markup((HERE / name).read_text(encoding="utf-8"))


def _data(analysis: Analysis, looks: dict[str, theme.Look]) -> Markup:
    """What the script draws."""
    contestants = [
        {"name": name, "colour": f"--k{look.number}", "path": theme.SHAPES[look.shape].path}
        for name, look in looks.items()
    ]
    series = {name: [asdict(level) for level in levels] for name, levels in timeline.traces(analysis).items()}
    told = {"contestants": contestants, "scenarios": series, "ring": theme.RING, "mark": loss.MARK}
    return templates.json_of(told)


class AllFigures(NamedTuple):
    """What the page's script is given, before it is cut to the room that there is."""

    looks: list[tuple[int, str, str, str]]
    names: dict[str, list[str]]
    sheets: dict[str, everything.Sheet]


def _all_figures(runs: Sequence[Analysis], looks: Sequence[Mapping[str, theme.Look]]) -> AllFigures:
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
    return AllFigures(drawn, names, everything.sheets(sources))
