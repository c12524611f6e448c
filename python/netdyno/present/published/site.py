"""The contents of a published site, and its pages. Pure."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from netdyno.kit.escape import harmless_markdown
from netdyno.model.base import Frozen, Name, Quoted
from netdyno.present import templates
from netdyno.present.export.entries import Findings
from netdyno.present.prose import environment as surroundings

VERSION = 3
"""Version 1 had no profiles, version 2 no command."""
FORMAT = "netdyno-site"
RUNS = "runs"
"""The folder of the runs' pages."""
HERE = Path(__file__).resolve().parent
STATED = (
    *("netdyno", "git_commit", "git_dirty", "cpu_model", "cores_online", "memory_bytes", "kernel", "system"),
    *("compiler", "compiler_flags", "pinning.note", "foreign_load"),
)
"""The entries of the environment that a reader needs first; all stand below."""


class PublishedAnswer(Frozen):
    """A run's answer to a question, or to a claim; `verdict` is a word of protocol/findings.md."""

    name: Name
    verdict: Name
    text: Quoted


class PublishedVersion(Frozen):
    """A version of a run in the site. `digest` is that of its export, `profiles` that of the profiles in its report,
    empty where it has none; `folder` is relative to the site's root."""

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
    answers: tuple[PublishedAnswer, ...]
    claims: tuple[PublishedAnswer, ...] = ()
    profiles: Name = ""
    command: Quoted = ""
    """The command line that made it; empty in a version published before it was listed."""
    interrupted: bool = False


class Site(Frozen):
    """All that was published, the oldest first: `site.json` at the root."""

    format: Name = FORMAT
    version: int = VERSION
    runs: tuple[PublishedVersion, ...] = ()


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


def name_folder(run_id: str, version: int) -> str:
    """Return the folder of a version of a run, within the site whatever the run calls itself."""
    name = re.sub(r"[^A-Za-z0-9._-]", "_", run_id).lstrip(".") or "run"
    return f"{RUNS}/{name[:150]}/{version}"


def make_entry(
    findings: Findings,
    environment: Mapping[str, Any],
    version: int,
    digest: str,
    profiles: str = "",
    *,
    command: str = "",
) -> PublishedVersion:
    """Return the entry of a run, from its export, and the command line that made it."""
    dirty = " with changes" if environment.get("git_dirty") else ""
    return PublishedVersion(
        run_id=findings.run_id,
        version=version,
        folder=name_folder(findings.run_id, version),
        digest=digest,
        profiles=profiles,
        command=command,
        interrupted=findings.finished_at is None,
        experiment=findings.experiment,
        question=findings.question,
        started_at=findings.started_at,
        commit=f"{environment.get('git_commit', 'unknown')}{dirty}",
        machine=str(environment.get("cpu_model") or environment.get("kernel") or "unknown"),
        trials=findings.counts.valid,
        answers=tuple(
            PublishedAnswer(name=question.name, verdict=question.verdict, text=question.sentence)
            for question in findings.scenarios
        ),
        claims=tuple(
            PublishedAnswer(name=claim.id, verdict=claim.verdict, text=claim.text) for claim in findings.claims
        ),
    )


def render_index(site: Site) -> str:
    """Return the first page: the newest version of each run, and links to the older ones."""
    return _render_page("index.html.j2", runs=_group_by_run(site), root="")


def render_summary(site: Site) -> str:
    """Describe the newest version of each run briefly in Markdown: its answers, and the claims by their verdict."""
    return "# Published runs\n\n" + "\n".join(_summarise_run(versions[0]) for versions in _group_by_run(site))


def _group_by_run(site: Site) -> list[list[PublishedVersion]]:
    """Return the versions of each run, the newest run and the newest version first."""
    by_run: dict[str, list[PublishedVersion]] = {}
    for version in site.runs:
        by_run.setdefault(version.run_id, []).insert(0, version)
    return sorted(by_run.values(), key=lambda versions: versions[0].started_at, reverse=True)


def _summarise_run(run: PublishedVersion) -> str:
    when = run.started_at[:16].replace("T", " ")
    ended = ", interrupted" if run.interrupted else ""
    made = (
        f"{run.experiment}, {when} UTC{ended}: {run.trials} valid trials on {run.machine}, commit {run.commit[:12]}"
        f"{f', by {run.command}' if run.command else ''}."
    )
    lines = [f"## {harmless_markdown(run.question)}", "", *_wrap(harmless_markdown(made)), ""]
    for answer in run.answers:
        lines += _wrap(f"* **{harmless_markdown(answer.name)}**: {harmless_markdown(answer.text)}")
    by_verdict: dict[str, list[str]] = {}
    for answer in run.claims:
        by_verdict.setdefault(answer.verdict.replace("_", " "), []).append(answer.name)
    if by_verdict:
        lines.append("")
    for verdict, names in by_verdict.items():
        lines += _wrap(f"* {len(names)} {harmless_markdown(verdict)}: {harmless_markdown(', '.join(names))}")
    return "\n".join(lines) + "\n"


def _wrap(text: str) -> list[str]:
    """Wrap a text of Markdown; no word begins a list or a heading because it comes first on a line."""
    indent = "  " if text.startswith("* ") else ""
    lines = textwrap.wrap(text, 118, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)
    return [*lines[:1], *(re.sub(r"\A( *\d*)([-+#>=.)])", r"\1\\\2", line) for line in lines[1:])]


def run_page(version: PublishedVersion, environment: Mapping[str, Any]) -> str:
    """Return the page of a run: its answers, its files, where it was made, and the command that made it."""
    stated = [(key, environment[key]) for key in STATED if key in environment]
    rest = [(key, value) for key, value in environment.items() if key not in STATED]
    return _render_page("run.html.j2", run=version, files=FILES, stated=stated, rest=rest, root="../../../")


def cut_first_sentence(text: str) -> str:
    """Return an answer without what follows its first sentence. A name in it may have dots, but no space after one."""
    first, dot, _ = text.partition(". ")
    return first + dot.strip()


def _render_page(template: str, **values: object) -> str:
    environment = templates.load_folder(HERE)
    environment.filters["entry"] = surroundings.format_entry
    environment.filters["first_sentence"] = cut_first_sentence
    return environment.get_template(template).render(style=templates.read_style(HERE / "page.css"), **values)
