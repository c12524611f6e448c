"""`netdyno advise`: whom to take for a workload, from stored runs where these cover it, else from a run that is made
for it."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import typer

from netdyno.base import quantities
from netdyno.base.errors import UserError, did_you_mean
from netdyno.base.escape import harmless
from netdyno.base.paths import build_dir, generator_path
from netdyno.base.temporary import temporary_folder
from netdyno.commands import run as run_command
from netdyno.contestants import codesize, contestants
from netdyno.experiment import experiment, plan, workload
from netdyno.experiment.workload import Workload
from netdyno.machine import digests, environment, pinning
from netdyno.model import transports
from netdyno.model.contestant import Contestant
from netdyno.model.experiment import Experiment
from netdyno.model.observation import ForeignLoad
from netdyno.present.terminal.console import Console
from netdyno.run import needed
from netdyno.store import read

if TYPE_CHECKING:  # its statistics are heavy
    from netdyno.analysis.advice.along import Along
    from netdyno.analysis.advice.found import Advice
    from netdyno.commands.advised import Stored

FILE_NAME, BESIDE_NAME = "advise.toml", f"{workload.BESIDE}.toml"
"""In a run's folder, what it asked, as a file of ./netdyno run."""
ANSWER_NAME = "advice.json"
SHARE_ALONG = 0.3
"""Of the time, what half and double of the workload's values may take."""
MOST_BESIDE = 4
"""Contestants that are looked at there, the one to take among them."""


class AdviseWishes(NamedTuple):
    """What was asked for. `given`: the workload as far as flags say it; `file` says the rest. `again`: no stored run is
    an answer. `along`: half and double of its values are looked at."""

    given: Workload
    file: Path | None
    results: Path
    as_json: bool
    foreign_load: ForeignLoad
    again: bool = False
    along: bool = True


class Rests(NamedTuple):
    """The run that an answer rests on. `stored`: it was there before."""

    run: str
    folder: Path
    stored: Stored | None = None


class Beside(NamedTuple):
    """Half and double of the workload's values, and the folder of that run; or `why` nobody looked, where that was not
    asked for."""

    along: Sequence[Along] | None = None
    folder: Path | None = None
    why: str = ""


class Answer(NamedTuple):
    advice: Advice
    rests: Rests
    beside: Beside = Beside()


def run(wishes: AdviseWishes, argv: Sequence[str]) -> int:
    """Exit code 0 with an answer, 1 without one, 128 + signal when interrupted."""
    asked = {**(workload.read(wishes.file) if wishes.file else {}), **wishes.given}
    if not asked:
        asked = questions()
    workload.check(asked)
    build = build_dir()
    servers = allowed(contestants.discover(build=build), asked)
    say = Console(stderr=wishes.as_json, highlight=False, soft_wrap=True)
    notes: list[str] = []
    found = None if wishes.again else from_stored(asked, servers, wishes, argv, build, notes)
    done = found or measured(asked, servers, wishes, argv)
    if isinstance(done, int):
        if wishes.as_json:
            print(json.dumps(nothing(asked)), flush=True)
        return done
    lines = words(done, asked, notes)
    for line in lines:
        say.print(line)
    document = as_json(done, lines)
    if (folder := done.rests.folder).is_dir():
        (folder / ANSWER_NAME).write_text(json.dumps(document, indent=1, allow_nan=False) + "\n", encoding="utf-8")
    if wishes.as_json:
        print(json.dumps(document, allow_nan=False), flush=True)
    return 0 if done.advice.take else 1


def allowed(servers: Sequence[Contestant], asked: Workload) -> tuple[Contestant, ...]:
    """Who could be taken: speaks it, can be started, is in an allowed language. Raises UserError where nobody is."""
    scenario = "chat" if asked.get("fan-out") == "room" else str(asked.get("speaks", "rpc"))
    patterns = asked.get("contestants", ("*",))
    named = contestants.select(servers, patterns)
    over = asked.get("transports", workload.TRANSPORTS_ASKED)
    for name in over:
        if name not in transports.TRANSPORTS:
            raise UserError(f"--transports: unknown transport {name!r}{did_you_mean(name, transports.TRANSPORTS)}")
    able = [
        one for one in named if one.available and scenario in one.manifest.workloads and transports.of(one).name in over
    ]
    if languages := asked.get("languages"):
        written = {one.name: one.language for one in codesize.describe(able, ()) if one.kind == "server"}
        known = sorted({language.lower() for language in written.values() if language})
        for language in languages:
            if language.lower() not in known:
                raise UserError(f"--languages: no server is written in {language!r}{did_you_mean(language, known)}")
        wanted = {language.lower() for language in languages}
        able = [one for one in able if written.get(one.name, "").lower() in wanted]
    if not able:
        names = [one.name for one in named]
        carriers = " or ".join(over)
        if len(names) == 1:
            raise UserError(f"{names[0]} does not support {scenario} over {carriers} here")
        subject = f"neither {names[0]} nor {names[1]}" if len(names) == 2 else f"none of {quantities.listed(names)}"
        raise UserError(f"{subject} supports {scenario} over {carriers} here")
    return tuple(able)


# --- a run that is there -------------------------------------------------------------------------------------------


def from_stored(
    asked: Workload,
    servers: Sequence[Contestant],
    wishes: AdviseWishes,
    argv: Sequence[str],
    build: Path,
    notes: list[str],
) -> Answer | None:
    """None where no stored run covers it; `notes` gets why those that would were not taken."""
    if not read.run_ids(wishes.results):
        return None
    from netdyno.commands import advised

    names = tuple(one.name for one in servers)
    found = experiment.parse(workload.toml(asked, names, main_s(asked, wishes)), "advise", "advise")
    ready = needed.make(found, servers, (), build).servers
    cores = pinning.choose()
    here = environment.collect(found, cores, build) | {"programs": digests.digests(generator_path(build), ready)}
    of = advised.Asked(found, workload.advise_of(asked), names, here, pinning.server_cores(cores))
    stored = advised.find(of, wishes.results, notes)
    if stored is None:
        return None
    answer = Answer(stored.advice, Rests(stored.run.run_id, stored.path.parent, stored))
    if not wishes.along or stored.near or stored.between:
        return answer
    if there := advised.half_and_double(of, stored.advice.take[0], wishes.results):
        return answer._replace(beside=Beside(*there))
    return answer._replace(beside=_beside(asked, stored.advice, servers, budget_s(asked), wishes, argv))


# --- a run that is made for it -------------------------------------------------------------------------------------


def budget_s(asked: Workload) -> float:
    return float(asked.get("time-budget", workload.TIME_BUDGET_S))


def main_s(asked: Workload, wishes: AdviseWishes) -> float:
    """What of it is for the workload itself."""
    return budget_s(asked) * (1 - SHARE_ALONG if wishes.along else 1.0)


def measured(
    asked: Workload,
    servers: Sequence[Contestant],
    wishes: AdviseWishes,
    argv: Sequence[str],
) -> Answer | int:
    """The exit code where there is no answer."""
    from netdyno.analysis.advice.of_run import of_run

    text = workload.toml(asked, [one.name for one in servers], main_s(asked, wishes))

    def adapt(found: Experiment) -> Experiment:
        return workload.to_advise(found, asked)

    done, folder = _carried_out(text, FILE_NAME, wishes, argv, adapt)
    if done.exit_code > 128 or done.analysis is None:
        return done.exit_code
    made = read.load(read.find(wishes.results, str(done.line["run_id"])))
    advice = of_run(made)
    if advice is None or not advice.take:
        return 1
    answer = Answer(advice, Rests(made.run_id, folder))
    if not wishes.along:
        return answer
    left_s = budget_s(asked) - plan.spent_s(made.all_trials)
    return answer._replace(beside=_beside(asked, advice, servers, left_s, wishes, argv))


def _carried_out(
    text: str, name: str, wishes: AdviseWishes, argv: Sequence[str], adapt: Callable[[Experiment], Experiment]
) -> tuple[run_command.Done, Path]:
    """The experiment of this text by the ordinary runner; the text stays in the run's folder."""
    with temporary_folder("advise") as place:
        path = place / name
        path.write_text(text, encoding="utf-8")
        asked = run_command.Wishes(
            str(path), "normal", {}, (), wishes.results, wishes.as_json, wishes.foreign_load, "never"
        )
        done = run_command.carry_out(asked, argv, lambda found, _servers, _clients: adapt(found))
    folder = wishes.results / str(done.line["run_id"])
    (folder / name).write_text(text, encoding="utf-8")
    return done, folder


def _beside(
    asked: Workload,
    advice: Advice,
    servers: Sequence[Contestant],
    left_s: float,
    wishes: AdviseWishes,
    argv: Sequence[str],
) -> Beside:
    """Half and double of as many of its values as there is time for: the one to take beside the next."""
    from netdyno.analysis.advice.along import along
    from netdyno.analysis.split import split
    from netdyno.model import outcomes

    names = dict.fromkeys((*advice.take, *(one.contestant for one in advice.findings.standings)))
    ranked = [one for name in names for one in servers if one.name == name]
    no_time = Beside(why="there was no time left")
    if left_s <= 0:
        return no_time
    if len(ranked) < 2 or not workload.factors(asked):
        return Beside()
    try:
        chosen = _that_fit(asked, ranked, left_s)
        if chosen is None:
            return no_time
        factors, (first, *others) = chosen
        text = workload.toml_along(asked, factors, (first, *others), left_s)
        done, folder = _carried_out(text, BESIDE_NAME, wishes, argv, lambda found: found)
    except UserError as error:  # double of a value may be more than this machine, or an option, allows
        print(f"netdyno: half and double of the values were not measured: {harmless(str(error))}", file=sys.stderr)
        return Beside()
    if done.exit_code > 128 or done.analysis is None:
        return Beside()
    made = read.load(read.find(wishes.results, str(done.line["run_id"])))
    to_keep = workload.advise_of(asked)
    return Beside([along(part, to_keep, first, others) for part in split(outcomes.judged(made))], folder)


def _that_fit(asked: Workload, ranked: Sequence[Contestant], left_s: float) -> tuple[list[str], list[str]] | None:
    """Factors and contestants, the best first: one factor at least, then as many of both as there is time for."""
    some = {one.name: one for one in ranked}
    for count in range(min(MOST_BESIDE, len(ranked)), 1, -1):
        names, factors = list(some)[:count], list[str]()
        for factor in workload.factors(asked):
            text = workload.toml_along(asked, [*factors, factor], names, left_s)
            if plan.estimate_seconds(experiment.parse(text, "beside", "beside"), some) <= left_s:
                factors.append(factor)
        if factors:
            return factors, names
    return None


# --- what is said --------------------------------------------------------------------------------------------------


def words(answer: Answer, asked: Workload, notes: Sequence[str]) -> list[str]:
    from netdyno.present.prose import advice as prose

    lines = ["", *prose.sentences(answer.advice)]
    stored = answer.rests.stored
    near = prose.near(answer.beside.along or ())
    if stored is not None and stored.near:
        near = prose.near_stored(
            answer.advice.take, [(one.option, one.value, one.take) for one in stored.near], stored.value
        )
    lines += near or (prose.not_looked(answer.beside.why),)
    how = prose.stored(stored.run.started_at, stored.between) if stored else prose.MADE
    beside = f"; the neighbouring values on {answer.beside.folder}" if answer.beside.folder else ""
    lines.append(f"This is based on {answer.rests.folder}, {how}{beside}.")
    lines += _cores(asked)
    return [*lines, *notes]


def _cores(asked: Workload) -> list[str]:
    here = pinning.server_cores(pinning.choose())
    wanted = asked.get("cores", here)
    if wanted == here:
        return []
    cores = quantities.plural(here, "core")
    return [f"Here the server has {cores}, and yours will have {wanted}: the effect of that was not measured."]


def as_json(answer: Answer, lines: Sequence[str]) -> dict[str, Any]:
    """For programs (docs/advise.md)."""
    from netdyno.present.export.advice import document

    return {
        **document(answer.advice, answer.beside.along),
        "run": answer.rests.run,
        "folder": str(answer.rests.folder),
        "beside_folder": str(answer.beside.folder) if answer.beside.folder else None,
        "stored": answer.rests.stored is not None,
        "text": [line for line in lines if line],
    }


def nothing(asked: Workload) -> dict[str, Any]:
    """The same where there is no answer."""
    from netdyno.present.export import advice as export

    found = export.nothing(workload.metric_of(asked), workload.slo_of(asked))
    return {**found, "run": None, "folder": None, "beside_folder": None, "stored": False, "text": []}


# --- a few questions -----------------------------------------------------------------------------------------------

ASKED = (
    ("connections", "How many connections?", "100"),
    ("rate", "How many messages a second in all (0: as many as possible)?", "0"),
    ("size", "How many bytes does a message have?", "64"),
    ("fan-out", "Who receives a message: its sender (none), or all clients (room)?", "none"),
    ("service-time", "How long does the server work for a request (0s: not at all)?", "0s"),
    ("service-kind", "Does it wait that long, or compute (wait, cpu)?", "wait"),
    ("slow-readers", "What share of the clients reads slowly?", "0"),
    ("objective", "What matters: throughput, cpu, memory, or an objective such as p99<5ms?", ""),
    ("languages", "In which languages (c++,go; empty: any)?", ""),
    ("time-budget", "How long may it take?", "5m"),
)


def questions() -> dict[str, Any]:
    """In a terminal, a few. Raises UserError elsewhere."""
    if not sys.stdin.isatty():
        raise UserError("say what the workload is, such as: advise --connections 200 --rate 5k --objective 'p99<5ms'")
    found: dict[str, Any] = {}
    for name, text, default in ASKED:
        if _is_moot(name, found):
            continue
        said = typer.prompt(text, default=default, show_default=bool(default)).strip()
        if said and not (said == default and name in ("rate", "slow-readers", "service-time", "fan-out")):
            value: object = int(said) if name in ("connections", "size") and said.isdigit() else said
            found[name] = workload.value_of(name, value, text)
    return found


def _is_moot(name: str, found: Mapping[str, Any]) -> bool:
    room = found.get("fan-out") == "room"
    return {
        "service-time": room,
        "service-kind": "service-time" not in found,
        "slow-readers": not room,
    }.get(name, False)
