"""The tables of `netdyno list`, each a list of flat objects that print as a table or as JSON."""

from __future__ import annotations

import shutil
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

import msgspec

from netdyno.kit.errors import UserError
from netdyno.kit.escape import harmless
from netdyno.kit.paths import RESULTS
from netdyno.model.audit_meanings import FAILURES
from netdyno.model.claim import Claim
from netdyno.model.contestant import About
from netdyno.model.experiment import Experiment
from netdyno.model.metrics import CLAIMED, METRICS
from netdyno.model.options import SCENARIO, SERVER
from netdyno.model.values import Option, OptionPlace
from netdyno.present.prose.exclusions import STATUS_WORDS
from netdyno.question import experiment
from netdyno.question.claims import TEST_KEYS
from netdyno.question.contestants import codesize
from netdyno.question.contestants.contestants import ContestantKind, discover
from netdyno.question.figures import FIGURE_KEYS
from netdyno.question.key_meanings import MEANINGS
from netdyno.store import read, schema

ListingRow = dict[str, object]


def list_contestants(kind: ContestantKind) -> list[ListingRow]:
    """List every contestant of a kind, available or not."""
    return [
        {
            "name": contestant.name,
            "model": contestant.manifest.model,
            "workloads": contestant.manifest.workloads,
            "transports": contestant.manifest.transports,
            "threads": contestant.manifest.threads,
            "clients": contestant.manifest.clients,
            "available": contestant.available,
            "why_not": contestant.why_not,
            "unranked": contestant.manifest.unranked,
            "unsafe": contestant.manifest.unsafe,
            "caveats": contestant.manifest.caveats,
            "summary": contestant.manifest.summary,
        }
        for contestant in discover(kind=kind)
    ]


def list_code() -> list[ListingRow]:
    """List the size of each contestant's code, and of the shared code."""
    rows: list[ListingRow] = []
    everyone = codesize.describe(discover(), discover(kind="client"))
    for about in everyone:
        size = msgspec.structs.asdict(about.code) if about.code else {}
        rows.append(
            {
                "name": about.name,
                "kind": about.kind,
                **size,
                **_measure_family(about, everyone),
                "why_not": about.why_no_code,
            }
        )
    return rows


def _measure_family(about: About, everyone: Sequence[About]) -> ListingRow:
    """Return the family of a contestant, and the size of its code with it."""
    size = codesize.sum_with_family(about, everyone)
    if about.kind == "shared" or size is None:
        return {}
    return {"lines_with_family": size.lines, "complexity_with_family": size.complexity, "family": about.family}


def list_workloads() -> list[ListingRow]:
    """List every workload with the servers that speak it."""
    speakers: dict[str, list[str]] = {}
    for contestant in discover():
        for workload in contestant.manifest.workloads:
            speakers.setdefault(workload, []).append(contestant.name)
    return [{"name": name, "servers": speakers[name]} for name in sorted(speakers)]


def list_experiments() -> list[ListingRow]:
    """List every experiment of the repository; one that cannot be read has the reason."""
    rows: list[ListingRow] = []
    for path, loaded in _load_experiments():
        if isinstance(loaded, UserError):
            row: ListingRow = {"question": f"(broken: {loaded})", "sizes": [], "blocks": 0, "scenarios": []}
        else:
            row = {
                "question": loaded.question,
                "sizes": experiment.list_budgets(path),
                "blocks": loaded.blocks,
                "scenarios": [scenario.name for scenario in loaded.scenarios],
            }
        rows.append({"name": path.stem, **row})
    return rows


def list_claims() -> list[ListingRow]:
    """List every claim that an experiment of the repository tests; one that cannot be read has the reason."""
    rows: list[ListingRow] = []
    for path, loaded in _load_experiments():
        if isinstance(loaded, UserError):
            rows.append({"id": "", "experiment": path.stem, "text": f"(broken: {loaded})"})
        elif not loaded.parts:  # else they are the parts' claims
            rows += [_claim_row(path.stem, claim) for claim in loaded.claims]
    return rows


def _load_experiments() -> Iterator[tuple[Path, Experiment | UserError]]:
    """Yield each experiment of the repository with its path, or the reason why it cannot be read."""
    folder = experiment.find_experiments_folder()
    for name in experiment.list_names(folder):
        path = folder / f"{name}.toml"
        try:
            yield path, experiment.load(path)
        except UserError as error:
            yield path, error


def _claim_row(experiment_name: str, claim: Claim) -> ListingRow:
    tests = [f"{test.__struct_config__.tag} of {test.metric}" for test in claim.tests]
    return {
        "id": claim.id,
        "experiment": experiment_name,
        "tests": list(dict.fromkeys(tests)),
        "needs": claim.needs,
        "needs_to_confirm": claim.needs_to_confirm,
        "needs_to_refute": claim.needs_to_refute,
        "text": claim.text,
        "published": claim.published,
    }


def list_runs(results: Path = RESULTS) -> list[ListingRow]:
    """List every stored run, oldest first; one that cannot be read has the reason."""
    rows: list[ListingRow] = []
    for run_id in read.run_ids(results):
        try:
            rows.append(dict(read.summary(results / run_id / schema.FILE_NAME)))
        except UserError as error:
            rows.append({"id": run_id, "error": str(error)})
    return rows


PLACES: Mapping[OptionPlace, str] = {
    "experiment": "experiment",
    "shared": "experiment or scenario",
    "link": "experiment or scenario",
    "cores": "experiment or scenario",
    "own": "scenario",
    "load": "scenario",
    "requests": "scenario",
    "server": "server",
}
"""The tables of an experiment file that may have an option, by its place."""


def list_keys() -> list[ListingRow]:
    """List every key of an experiment file, with its table, its default and its meaning."""
    keys: list[ListingRow] = [
        {"key": key, "table": table, "default": "", "meaning": _name_kinds(table, key) + meaning}
        for table, meanings in MEANINGS.items()
        for key, meaning in meanings.items()
    ]
    return keys + [
        {
            "key": option.name,
            "table": PLACES[option.place],
            "default": _format_default(option),
            "meaning": _explain(option),
        }
        for options in (experiment.OWN, SCENARIO, SERVER)
        for option in options.values()
    ]


def _name_kinds(table: str, key: str) -> str:
    """Name the kinds of tests or figures that have a key, unless all have it."""
    kinds = {"claim.test": TEST_KEYS, "figure": FIGURE_KEYS}.get(table, {})
    having = [kind for kind, keys in kinds.items() if key in keys]
    return f"{', '.join(having)}: " if 0 < len(having) < len(kinds) else ""


def _format_default(option: Option) -> str:
    default = experiment.AA_SHARE if option.name == "aa-share" else option.default
    return "" if default in (None, ()) else option.takes.text(default)


def _explain(option: Option) -> str:
    return f"{option.help} ({', '.join(option.takes.words)})" if option.takes.words else option.help


def list_metrics() -> list[ListingRow]:
    """List every metric of claims and figures, with its unit and its better side."""
    return [
        {
            "metric": name,
            "unit": METRICS[name].unit.name,
            "better": METRICS[name].better,
            "meaning": METRICS[name].title,
        }
        for name in CLAIMED
    ]


def list_audits() -> list[ListingRow]:
    """List every audit with its kind, which says what follows from a failure, and the meaning of one."""
    return [
        {"audit": name, "kind": kind, "meaning": failure}
        for kind, failures in FAILURES.items()
        for name, failure in failures.items()
    ]


LISTS: Mapping[str, Callable[[], list[ListingRow]]] = {
    "servers": partial(list_contestants, "server"),
    "clients": partial(list_contestants, "client"),
    "code": list_code,
    "workloads": list_workloads,
    "experiments": list_experiments,
    "claims": list_claims,
    "keys": list_keys,
    "metrics": list_metrics,
    "audits": list_audits,
}


_OF_CONTESTANTS = ("summary", "caveats", "clients", "available", "workloads", "transports")
_IN_JSON_ONLY: Mapping[str, Sequence[str]] = {
    "servers": _OF_CONTESTANTS,
    "clients": _OF_CONTESTANTS,
    "code": ("kind", "files", "functions", "complexity_max", "complexity_with_family", "family"),
    "experiments": ("scenarios",),
    "claims": ("tests", "published"),
    "runs": ("started_at", "finished_at"),
}
_NOTES = {
    "unranked": "unranked",
    "unsafe": "unsafe",
    "needs": "needs",
    "needs_to_confirm": "needs to confirm",
    "needs_to_refute": "needs to refute",
    "why_not": "not available",
    "error": "error",
}
"""What only some rows have, which stands below them, and its title."""
_TITLES = {"sizes": "budgets"}
"""The titles of columns that have another name in JSON."""
_LAST = ("model", "question", "text", "servers", "trials")
"""The long column of each list, which stands last and goes on in further lines."""
WIDTH = 80
"""The columns of a pipe, and the least that a terminal is taken to have."""


def as_text(what: str, rows: list[ListingRow]) -> str:
    """Format the rows as an aligned table of at most the terminal's width, the notes of a row below it. The JSON has
    more columns."""
    if not rows:
        return f"no {what} yet"
    texts = [{key: harmless(_format_cell(value)) for key, value in row.items()} for row in rows]
    hidden = {*_IN_JSON_ONLY.get(what, ()), *_NOTES}
    shown = [key for key in dict.fromkeys(key for row in texts for key in row) if key not in hidden]
    columns = sorted((key for key in shown if any(row.get(key) for row in texts)), key=lambda key: key in _LAST)
    titles = {key: _TITLES.get(key, key.replace("_", " ")) for key in columns}
    widths = [max(len(row.get(key, "")) for row in (titles, *texts)) for key in columns[:-1]]
    width = max(WIDTH, shutil.get_terminal_size().columns)
    return "\n".join(line for row in (titles, *texts) for line in _format_row(row, columns, widths, width))


def _format_row(row: Mapping[str, str], columns: Sequence[str], widths: Sequence[int], width: int) -> list[str]:
    start = "".join(f"{row.get(key, ''):{size}}  " for key, size in zip(columns, widths, strict=False))
    lines = _wrap(row.get(columns[-1], ""), start, " " * len(start), width)
    for key, title in _NOTES.items():
        if row.get(key):
            lines += _wrap(row[key], f"    {title}: ", " " * 6, width)
    return lines


def _wrap(text: str, start: str, indent: str, width: int) -> list[str]:
    """Wrap a text that begins after `start`, and without any of it."""
    lines = textwrap.wrap(
        text, width, initial_indent=start, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )
    return lines or [start.rstrip()]


def _format_cell(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, dict):
        return ", ".join(f"{count} {STATUS_WORDS.get(name, name)}" for name, count in value.items() if count)
    if isinstance(value, list | tuple):
        return " ".join(str(item) for item in value)
    return "" if value is None else str(value)
