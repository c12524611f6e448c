"""What a published site holds, and its pages. Pure."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from netdyno.model.base import Frozen, Name, Quoted
from netdyno.present import templates
from netdyno.present.export.tables import escaped
from netdyno.present.prose import environment as surroundings

VERSION = 2
"""1 knew no profiles."""
FORMAT = "netdyno-site"
HERE = Path(__file__).resolve().parent
STATED = ("git_commit", "git_dirty", "cpu_model", "cores_online", "kernel", "system", "compiler", "compiler_flags")
"""Of the environment, what a reader asks for first; all of it stands below."""


class Answer(Frozen):
    """What a run says to a question or a claim: `verdict` is a word of protocol/findings.md."""

    name: Name
    verdict: Name
    text: Quoted


class Entry(Frozen):
    """A version of a run in the site. `digest` is that of its export, `profiles` that of what its report has of them,
    empty where it has none; `folder` is where it is from the site's root."""

    run_id: Name
    version: int
    folder: Name
    digest: Name
    experiment: Name
    question: Quoted
    started_at: Quoted
    commit: Quoted
    machine: Quoted
    trials: int
    answers: tuple[Answer, ...]
    claims: tuple[Answer, ...] = ()
    profiles: Name = ""


class Site(Frozen):
    """The list of all that was published, the first first: `site.json` at the root."""

    format: Name = FORMAT
    version: int = VERSION
    runs: tuple[Entry, ...] = ()


class File(NamedTuple):
    """A file of a run's page, as it is linked."""

    name: str
    what: str


FILES = (
    File("report.html", "the report: rankings, intervals, drawings, excluded trials and why"),
    File("export.json", "everything for programs: findings, cells, and every trial"),
    File("export.csv", "the same as one table, a row a figure"),
    File("export.md", "rankings and claims as text"),
    File("environment.json", "the machine that it was made on"),
)


def folder_of(run_id: str, version: int) -> str:
    """Where a version of a run is: whatever a run calls itself, it stays within the site."""
    name = re.sub(r"[^A-Za-z0-9._-]", "_", run_id).lstrip(".") or "run"
    return f"runs/{name[:150]}/{version}"


def entry(
    findings: Mapping[str, Any], environment: Mapping[str, Any], version: int, digest: str, profiles: str = ""
) -> Entry:
    """The line of a run, of what its export says."""
    run_id = str(findings["run_id"])
    dirty = " with changes" if environment.get("git_dirty") else ""
    return Entry(
        run_id=run_id,
        version=version,
        folder=folder_of(run_id, version),
        digest=digest,
        profiles=profiles,
        experiment=str(findings["experiment"]),
        question=str(findings["question"]),
        started_at=str(findings["started_at"]),
        commit=f"{environment.get('git_commit', 'unknown')}{dirty}",
        machine=str(environment.get("cpu_model") or environment.get("kernel") or "unknown"),
        trials=int(findings["trials"]["valid"]),
        answers=tuple(
            Answer(name=one["name"], verdict=one["verdict"], text=one["sentence"]) for one in findings["questions"]
        ),
        claims=tuple(Answer(name=one["id"], verdict=one["verdict"], text=one["text"]) for one in findings["claims"]),
    )


def index(site: Site) -> str:
    """The first page: the newest version of each run, and links to the older ones."""
    return _page("index.html.j2", runs=_newest(site), root="")


def summary(site: Site) -> str:
    """The newest version of each run as a short text in Markdown: what it answers, and the claims by their verdict."""
    return "# Published runs\n\n" + "\n".join(_summary(versions[0]) for versions in _newest(site))


def _newest(site: Site) -> list[list[Entry]]:
    """The versions of each run, the newest first, of runs as of versions."""
    by_run: dict[str, list[Entry]] = {}
    for one in site.runs:
        by_run.setdefault(one.run_id, []).insert(0, one)
    return sorted(by_run.values(), key=lambda versions: versions[0].started_at, reverse=True)


def _summary(run: Entry) -> str:
    when = run.started_at[:16].replace("T", " ")
    made = f"{run.experiment}, {when} UTC: {run.trials} valid trials on {run.machine}, commit {run.commit[:12]}."
    lines = [f"## {escaped(run.question)}", "", *_wrapped(escaped(made)), ""]
    for one in run.answers:
        lines += _wrapped(f"* **{escaped(one.name)}**: {escaped(one.text)}")
    by_verdict: dict[str, list[str]] = {}
    for one in run.claims:
        by_verdict.setdefault(one.verdict.replace("_", " "), []).append(one.name)
    if by_verdict:
        lines.append("")
    for verdict, names in by_verdict.items():
        lines += _wrapped(f"* {len(names)} {escaped(verdict)}: {escaped(', '.join(names))}")
    return "\n".join(lines) + "\n"


def _wrapped(text: str) -> list[str]:
    indent = "  " if text.startswith("* ") else ""
    return textwrap.wrap(text, 120, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


def run_page(one: Entry, environment: Mapping[str, Any]) -> str:
    """The page of a run: its answers, its files, and where it was made."""
    stated = [(key, environment[key]) for key in STATED if key in environment]
    rest = [(key, value) for key, value in environment.items() if key not in STATED]
    return _page("run.html.j2", run=one, files=FILES, stated=stated, rest=rest, root="../../../")


def _page(template: str, **what: object) -> str:
    environment = templates.of(HERE)
    environment.filters["entry"] = surroundings.entry
    return environment.get_template(template).render(style=templates.style(HERE / "page.css"), **what)
