"""The report of a run: one HTML file that needs nothing else, offline, light and dark, on a phone, by keyboard."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

import msgspec
from jinja2 import Template
from markupsafe import Markup
from msgspec.structs import replace

from netdyno.analysis.found.compare import SideBySide
from netdyno.analysis.found.exclusions import TrialNote
from netdyno.analysis.found.run import Analysis
from netdyno.kit import quantities
from netdyno.kit.files import write_whole
from netdyno.kit.paths import ENTRY
from netdyno.model.profile import Profiled
from netdyno.present import templates
from netdyno.present.export.collect import collect
from netdyno.present.prose import claim_verdicts, exclusions, loss, repeat, unread, verdict
from netdyno.present.prose import code_gains as code_gains_prose
from netdyno.present.prose import environment as surroundings
from netdyno.present.prose import profile as profile_prose
from netdyno.present.prose import scaling as scaling_words
from netdyno.present.report import (
    charts,
    code_gains,
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
from netdyno.store.profiles import StoredProfiles

HERE = Path(__file__).resolve().parent
MOST_NOTES = 20
"""Trials listed per cause; a run in which everything fails must still give a page of two megabytes at most."""
STYLES = (HERE / "vendor" / "uPlot.min.css", HERE / "page.css")
SCRIPTS = (HERE / "vendor" / "uPlot.iife.min.js", HERE / "tools.js", HERE / "page.js")
MOST_OF_PAGE = 4 * 2**20
"""Bytes. The single trials get what the rest of the page leaves."""
FIGURES_HERE = Markup("\0figures")
"""The mark of their place, filled once the room is known: nothing else on a page has such a character."""
FOR_TITLE = 200
"""Bytes for the title of a table that is cut."""
NO_PROFILES = StoredProfiles()
LOG_TAIL = 1500
"""Characters of a trial's log in the page, its end; the whole log is stored with the run."""


class Overlaid(NamedTuple):
    """A further run on a page, and what changed since the first."""

    analysis: Analysis
    changes: SideBySide


def write_page(
    analysis: Analysis, path: Path, over: Sequence[Overlaid] = (), profiled: StoredProfiles = NO_PROFILES
) -> None:
    """Write the page to `path`: a reader sees the old file or the whole new one. Raises OSError."""
    write_whole(path, render_html(analysis, over, profiled))


def render_html(analysis: Analysis, over: Sequence[Overlaid] = (), profiled: StoredProfiles = NO_PROFILES) -> str:
    """Return the page of a run, with its profiles and further runs laid over it. Equal findings give equal text."""
    runs = [analysis, *(overlaid.analysis for overlaid in over)]
    unranked = [name for chart in analysis.charts for name in chart.unsafe]
    run_contestants = [name for run in runs for name in run.contestants]
    contestant_styles = theme.assign_styles(list(dict.fromkeys([*analysis.contestants, *unranked, *run_contestants])))
    all_styles = theme.copy_for_runs(contestant_styles, len(runs))
    shown = _show_findings(analysis, over, contestant_styles, all_styles)
    figures = _collect_figures(runs, all_styles)
    page = _render_page(shown, _order_profiles(analysis, profiled), profiled.damaged)
    room = MOST_OF_PAGE - len(page.encode()) - len(_fill_in_rows(figures, 0)) - FOR_TITLE
    return page.replace(FIGURES_HERE, _fill_in_rows(figures, room))


def _show_findings(
    analysis: Analysis,
    over: Sequence[Overlaid],
    contestant_styles: dict[str, theme.ContestantStyle],
    all_styles: Sequence[Mapping[str, theme.ContestantStyle]],
) -> dict[str, object]:
    """Return what the template shows of the findings, computed once: to draw takes most of the time of a page."""
    runs = [analysis, *(overlaid.analysis for overlaid in over)]
    return {
        "analysis": analysis,
        "links": quantities.listed(analysis.links),
        "windows": quantities.listed([quantities.duration(1e9 * window) for window in analysis.windows_s]),
        "claims": views.present_claims(analysis.claims, analysis.scenarios),
        "verdicts": claim_verdicts.summarise_claims(analysis.claims),
        "unread_explained": unread.EXPLAINED,
        "scenarios": [
            views.present_scenario(scenario, contestant_styles, number)
            for number, scenario in enumerate(analysis.scenarios, 1)
        ],
        "charts": [
            charts.make_view(chart, contestant_styles, f"f{number}") for number, chart in enumerate(analysis.charts, 1)
        ],
        "flips": [
            flips.make_view(flip, contestant_styles, f"flip{number}") for number, flip in enumerate(analysis.flips, 1)
        ],
        "machine": machine.make_view(analysis.canary),
        "again": machine.make_retries_view(analysis.retried),
        "control": control.make_view(analysis.control),
        "audits": views.tabulate_audits(analysis.audits),
        "code": views.tabulate_code(analysis.about),
        "code_gains": code_gains.make_view(analysis.code_gains, contestant_styles),
        "code_gains_words": code_gains_prose,
        "commands": repeat.list_commands(analysis),
        "entry": ENTRY,
        "overlay": overlay.make_view(runs, [overlaid.changes for overlaid in over], all_styles) if over else None,
        "own_variables": Markup(theme.declare_run_colours(all_styles)),
        "contestant_styles": contestant_styles,
        "data": _make_data(analysis, contestant_styles),
    }


def _render_page(
    shown: Mapping[str, object], profiled_loads: Sequence[Profiled], damaged_profiles: Sequence[str]
) -> str:
    """Return the page with a mark where the figures go."""
    page = _load_template().render(
        shown,
        style=Markup("").join(map(_read_file, STYLES)),
        script=Markup("\n").join(map(_read_file, SCRIPTS)),
        profiled={entry.question: (entry.load, profile_prose.view_profiles(entry)) for entry in profiled_loads},
        profiles_damaged=damaged_profiles,
    )
    return styles.share_styles(page)


@cache
def _load_template() -> Template:
    """Return the template, with what is the same on every page."""
    environment = templates.load_folder(HERE)
    environment.filters.update(
        groupby_reason=_group_by_reason,
        reason=exclusions.describe_reason,
        pinning=surroundings.describe_pinning,
        entry=surroundings.format_entry,
        share=quantities.share,
    )
    environment.globals.update(
        light=Markup(theme.declare_colours(theme.LIGHT, theme.HEAT_LIGHT)),
        dark=Markup(theme.declare_colours(theme.DARK, theme.HEAT_DARK)),
        shapes=theme.SHAPES,
        ring_path=theme.RING,
        published_path=theme.PUBLISHED,
        heat_steps=theme.HEAT_STEPS,
        what_holds=verdict.WHAT_HOLDS,
        what_profiles_are=profile_prose.WHAT_IT_IS,
        status_words=exclusions.STATUS_WORDS,
        mark_sign=loss.MARK,
        most_sweeps=panels.MOST_SWEEPS,
        scaling_explained=scaling_words.EXPLANATION,
        most_notes=MOST_NOTES,
        log_tail=LOG_TAIL,
        all_figures=FIGURES_HERE,
        uplot_licence=_read_file(HERE / "vendor" / "uPlot.LICENSE"),
    )
    return environment.get_template("page.html.j2")


def _fill_in_rows(figures: AllFigures, room: int) -> Markup:
    """Return the figures as JSON, with as many of the trials as there is room for."""
    sheets = {**figures.sheets, "trials": everything.fit_sheet(figures.sheets["trials"], room)}
    shown = {name: msgspec.structs.asdict(sheet) for name, sheet in sheets.items()}
    return templates.encode_json(
        {"contestantStyles": figures.contestant_styles, "names": figures.names, "sheets": shown}
    )


def _group_by_reason(notes: Sequence[TrialNote]) -> list[tuple[tuple[str, str, str], list[TrialNote]]]:
    """Group a contestant's trials that are excluded for the same cause, in the order of their first."""
    groups: dict[tuple[str, str, str], list[TrialNote]] = {}
    for note in notes:
        groups.setdefault((note.status, note.contestant, exclusions.describe_cause(note.cause)), []).append(note)
    return list(groups.items())


def _order_profiles(analysis: Analysis, profiled: StoredProfiles) -> list[Profiled]:
    """Return the profiles in the order of the questions on the page, and their servers in the order of their ranks."""
    by_name = {entry.question: entry for entry in profiled.questions}
    ranked_loads: list[Profiled] = []
    for findings in analysis.scenarios:
        places = {standing.contestant: number for number, standing in enumerate(findings.standings)}
        if entry := by_name.get(findings.scenario.name):
            ranked = sorted(entry.profiles, key=lambda server_profile: places.get(server_profile.server, len(places)))
            ranked_loads.append(replace(entry, profiles=tuple(ranked)))
    return ranked_loads


def _read_file(path: Path) -> Markup:
    """Read a file of ours unchanged: our own text and vendored code, nothing from a run."""
    return Markup(path.read_text(encoding="utf-8"))


def _make_data(analysis: Analysis, contestant_styles: dict[str, theme.ContestantStyle]) -> Markup:
    """Return the data that the page's script draws."""
    contestants = [
        {"name": name, "colour": f"--k{style.number}", "path": theme.SHAPES[style.shape].path}
        for name, style in contestant_styles.items()
    ]
    series = {name: msgspec.to_builtins(levels) for name, levels in timeline.collect_traces(analysis).items()}
    content = {"contestants": contestants, "scenarios": series, "ring": theme.RING, "mark": loss.MARK}
    return templates.encode_json(content)


class AllFigures(NamedTuple):
    """The input of the page's script, before it is cut to the room on the page."""

    contestant_styles: list[tuple[int, str, str, str]]
    names: dict[str, list[str]]
    sheets: dict[str, everything.Sheet]


def _collect_figures(
    runs: Sequence[Analysis], contestant_styles: Sequence[Mapping[str, theme.ContestantStyle]]
) -> AllFigures:
    """Collect the names that the reader filters by, and every figure."""
    sources = [
        everything.Source(
            run=analysis.run_id,
            export=collect(analysis),
            workloads={findings.scenario.name: findings.scenario.workload for findings in analysis.scenarios},
            labels={
                (findings.scenario.name, level.key): level.label
                for findings in analysis.scenarios
                for level in findings.levels
            },
        )
        for analysis in runs
    ]
    names = {
        "run": [source.run for source in sources],
        "workload": list(dict.fromkeys(name for source in sources for name in source.workloads.values())),
        "contestant": list(contestant_styles[0]),
        "level": list(dict.fromkeys(label for source in sources for label in source.labels.values())),
    }
    drawn = [
        (style.number, name, source.run, theme.SHAPES[style.shape].path)
        for source, run_styles in zip(sources, contestant_styles, strict=True)
        for name, style in run_styles.items()
    ]
    return AllFigures(drawn, names, everything.make_sheets(sources))
