"""The cores of a server and the threads of each contestant: they decide what a comparison can show at all, and which
contestants are compared. Facts without words (prose/ground.py has those). Pure functions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from netdyno.analysis.found.ground import Ground, ThreadsRun, Together
from netdyno.model.base import Name, type_level
from netdyno.model.contestant import About, stands_already
from netdyno.model.experiment import Scenario
from netdyno.model.levels import level_key
from netdyno.model.options import Settings, settings
from netdyno.model.server_options import all_options
from netdyno.model.trial import Trial


def describe_ground(
    scenario: Scenario,
    trials: Sequence[Trial],
    about: Sequence[About],
    cores_allowed: int | None = None,
    quota_cores: float | None = None,
) -> Ground:
    """Return the ground of some trials of a scenario; a skipped trial ran nothing and does not count. `about` is what a
    stored run remembers of each contestant: one without a word on its threads (a server of the user's own, or a run
    stored before they were recorded) is not among `threads`. `cores_allowed`: the cores that a server could use when
    not pinned; `quota_cores`: those that a CPU quota left; both are in the environment of the run. The cores of a
    server that was already running, perhaps on another machine, are not known."""
    trials = [trial for trial in trials if trial.status != "skipped"]
    by_name = {program.name: program for program in about if program.kind == "server"}
    options: dict[str, list[Mapping[str, object]]] = {}
    for trial in trials:
        options.setdefault(trial.contestant, []).append(_read_options(scenario, trial))
    pinned = _list_pinned(trials, by_name)
    cores = {len(trial.pinning.server) or cores_allowed for trial in pinned if trial.pinning is not None}
    ran = (_read_threads(name, by_name.get(name), trial_options) for name, trial_options in sorted(options.items()))
    return Ground(
        server_cores=tuple(sorted(count for count in cores if count is not None)),
        threads=tuple(threads for threads in ran if threads is not None),
        shared=any(trial.pinning.is_shared for trial in pinned if trial.pinning is not None),
        together=_group(find_usable_cores(scenario, trials, about, cores_allowed)),
        quota_cores=quota_cores,
    )


Usable = Mapping[Name, Mapping[Name, frozenset[int]]]
"""The numbers of cores on which a contestant could work at a time, each once, by contestant and key of the level."""


def find_usable_cores(
    scenario: Scenario, trials: Sequence[Trial], about: Sequence[About], cores_allowed: int | None = None
) -> Usable:
    """Return the usable cores of every contestant that ran; no level where they are unknown. Parameters as above."""
    trials = [trial for trial in trials if trial.status != "skipped"]
    by_name = {program.name: program for program in about if program.kind == "server"}
    single = _find_single_threaded(trials, by_name)
    found_cores: dict[str, dict[str, set[int]]] = {trial.contestant: {} for trial in trials}
    at_level: dict[str, Settings] = {}
    for trial in _list_pinned(trials, by_name):
        key = level_key(trial.levels)
        if (cell_settings := at_level.get(key)) is None:
            cell_settings = at_level[key] = settings(scenario, trial.levels)
        cores = (len(trial.pinning.server) if trial.pinning is not None else 0) or cores_allowed
        if cores is not None:
            most = 1 if trial.contestant in single else cores
            usable = _count_usable(cell_settings, trial, by_name.get(trial.contestant), most)
            found_cores[trial.contestant].setdefault(key, set()).add(usable)
    return {
        name: {level: frozenset(numbers) for level, numbers in by_level.items()}
        for name, by_level in found_cores.items()
    }


def _list_pinned(trials: Sequence[Trial], about: Mapping[str, About]) -> list[Trial]:
    """Return the trials of servers that the harness started, and so gave cores."""
    already_standing = {name for name, known in about.items() if stands_already(known)}
    return [trial for trial in trials if trial.pinning is not None and trial.contestant not in already_standing]


def _read_options(scenario: Scenario, trial: Trial) -> Mapping[str, type_level]:
    return all_options(settings(scenario, trial.levels).server, trial.added)


def _read_threads(name: str, about: About | None, trial_options: Sequence[Mapping[str, object]]) -> ThreadsRun | None:
    if about is None or about.threads is None:
        return None
    if about.threads == "per-connection":
        return ThreadsRun(contestant=name, model=about.threads, counts=())
    counts = {int(str(values.get("threads", 1))) for values in trial_options}
    by_default = about.threads == "any" and not any("threads" in values for values in trial_options)
    return ThreadsRun(contestant=name, model=about.threads, counts=tuple(sorted(counts)), by_default=by_default)


def _find_single_threaded(trials: Sequence[Trial], about: Mapping[str, About]) -> set[str]:
    """Return the user's own servers that never had a second thread, as the kernel counted."""
    seen: dict[str, set[int]] = {}
    for trial in trials:
        known = about.get(trial.contestant)
        if known is not None and known.own is not None and trial.server is not None:
            seen.setdefault(trial.contestant, set()).add(trial.server.threads)
    return {name for name, threads in seen.items() if threads == {1}}


def _count_usable(cell_settings: Settings, trial: Trial, about: About | None, cores: int) -> int:
    """Return the cores on which a server could work at a time in a trial: at most those that it has, its serving
    threads, and the connections that send, for one thread at a time serves a connection. A server whose threads are not
    known may use all of its cores."""
    model = about.threads if about is not None else None
    threads = (
        int(all_options(cell_settings.server, trial.added).get("threads", 1)) if model in ("any", "one") else cores
    )
    return min(cores, threads, cell_settings.busy_connections or cell_settings.connections)


def _group(usable: Usable) -> tuple[Together, ...]:
    """Group contestants with the same cores at all levels that they share. Groups of several come first, those with
    most cores at their head. Contestants run at more levels are placed first: the rest may fit several groups."""
    groups: list[tuple[dict[str, frozenset[int]], list[str]]] = []
    for name, by_level in sorted(usable.items(), key=lambda item: (-len(item[1]), item[0])):
        for merged, names in groups:
            if all(merged.get(level, cores) == cores for level, cores in by_level.items()):
                merged.update(by_level)
                names.append(name)
                break
        else:
            groups.append((dict(by_level), [name]))
    together = [
        Together(cores=_list_numbers(merged.values()), contestants=tuple(sorted(names))) for merged, names in groups
    ]
    return tuple(sorted(together, key=_order))


def _order(group: Together) -> tuple[bool, int, tuple[Name, ...]]:
    return len(group.contestants) == 1, -max(group.cores, default=0), group.contestants


def _list_numbers(cores: Iterable[frozenset[int]]) -> tuple[int, ...]:
    return tuple(sorted(frozenset[int]().union(*cores)))
