"""How many cores a server had and how many threads each contestant ran: what a comparison could show at all, and who
is compared with whom. Facts without words (prose/ground.py has those). Pure functions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

from netdyno.model.base import Frozen, Name, type_level
from netdyno.model.contestant import About, stands_already
from netdyno.model.experiment import Scenario
from netdyno.model.levels import level_key
from netdyno.model.options import Settings, settings
from netdyno.model.server_options import all_options
from netdyno.model.trial import Trial

Threads = Literal["any", "one", "per-connection"]
"""What a manifest says of a contestant's threads."""


class ThreadsRun(Frozen):
    """Threads of a contestant that serve connections, as its options say; others, such as one that accepts, are not
    among them. `model` is the manifest's `threads`. `counts` are the numbers of all its trials, each once: none for a
    thread per connection. `by_default`: the run named no number, and was stored when one was the default."""

    contestant: Name
    model: Threads
    counts: tuple[int, ...]
    by_default: bool = False

    @property
    def alone(self) -> bool:
        """Whether one thread did all the work."""
        return self.counts == (1,)


class Together(Frozen):
    """Contestants that could use equally many cores at every level, and are ranked with each other. `cores`: how many
    at a time, each number once; none where that is not known."""

    cores: tuple[int, ...]
    contestants: tuple[Name, ...]


class Ground(Frozen):
    """`server_cores`: how many cores the server had, each number once; none where no trial tells. `shared`: the load
    ran on these, too. `together`: all contestants, by the cores that they could use; first comes who is to be told
    first. `quota_cores`: how many cores' time a CPU quota left all programs of a trial together; None: all."""

    server_cores: tuple[int, ...]
    threads: tuple[ThreadsRun, ...]
    shared: bool = False
    together: tuple[Together, ...] = ()
    quota_cores: float | None = None

    @property
    def parallel(self) -> bool:
        """Whether two threads of a server could ever run at the same time: without that no lock is contended but where
        its holder is switched out, and no second thread does more work than one."""
        return any(cores >= 2 for cores in self.server_cores)

    def group_of(self, contestant: str) -> int:
        """Return the place of a contestant's group in `together`; the first of one that no trial tells of."""
        return next((at for at, one in enumerate(self.together) if contestant in one.contestants), 0)


def ground_of(
    scenario: Scenario,
    trials: Sequence[Trial],
    about: Sequence[About],
    cores_allowed: int | None = None,
    quota_cores: float | None = None,
) -> Ground:
    """Of some trials of a scenario; one that was skipped ran nothing and tells nothing. `about` says of each contestant
    what a stored run remembers: one of whose threads it says nothing (a server of the user's own, or a run stored
    before that was recorded) is not among `threads`. `cores_allowed`: what a server that was not pinned could use, and
    `quota_cores`: what a CPU quota left, both in the environment of the run. Of one that stands already, and perhaps
    elsewhere, the cores are not known."""
    trials = [trial for trial in trials if trial.status != "skipped"]
    by_name = {one.name: one for one in about if one.kind == "server"}
    options: dict[str, list[Mapping[str, object]]] = {}
    for trial in trials:
        options.setdefault(trial.contestant, []).append(_options(scenario, trial))
    pinned = _pinned(trials, by_name)
    cores = {len(trial.pinning.server) or cores_allowed for trial in pinned if trial.pinning is not None}
    ran = (_ran(name, by_name.get(name), each) for name, each in sorted(options.items()))
    return Ground(
        server_cores=tuple(sorted(count for count in cores if count is not None)),
        threads=tuple(one for one in ran if one is not None),
        shared=any(one.pinning.is_shared for one in pinned if one.pinning is not None),
        together=_together(usable_cores(scenario, trials, about, cores_allowed)),
        quota_cores=quota_cores,
    )


Usable = Mapping[Name, Mapping[Name, frozenset[int]]]
"""By contestant and level (its key): on how many cores at a time it could work there, each number once."""


def usable_cores(
    scenario: Scenario, trials: Sequence[Trial], about: Sequence[About], cores_allowed: int | None = None
) -> Usable:
    """Return it for every contestant that ran, with no level where its cores are not known. Parameters as above."""
    trials = [trial for trial in trials if trial.status != "skipped"]
    by_name = {one.name: one for one in about if one.kind == "server"}
    single = _single_threaded(trials, by_name)
    found: dict[str, dict[str, set[int]]] = {trial.contestant: {} for trial in trials}
    at_level: dict[str, Settings] = {}
    for trial in _pinned(trials, by_name):
        key = level_key(trial.levels)
        if (wanted := at_level.get(key)) is None:
            wanted = at_level[key] = settings(scenario, trial.levels)
        cores = (len(trial.pinning.server) if trial.pinning is not None else 0) or cores_allowed
        if cores is not None:
            most = 1 if trial.contestant in single else cores
            usable = _usable(wanted, trial, by_name.get(trial.contestant), most)
            found[trial.contestant].setdefault(key, set()).add(usable)
    return {
        name: {level: frozenset(numbers) for level, numbers in by_level.items()} for name, by_level in found.items()
    }


def _pinned(trials: Sequence[Trial], about: Mapping[str, About]) -> list[Trial]:
    """Those of servers that the harness started, and so gave cores."""
    found_there = {name for name, known in about.items() if stands_already(known)}
    return [trial for trial in trials if trial.pinning is not None and trial.contestant not in found_there]


def _options(scenario: Scenario, trial: Trial) -> Mapping[str, type_level]:
    return all_options(settings(scenario, trial.levels).server, trial.added)


def _ran(name: str, known: About | None, options: Sequence[Mapping[str, object]]) -> ThreadsRun | None:
    if known is None or known.threads is None:
        return None
    if known.threads == "per-connection":
        return ThreadsRun(contestant=name, model=known.threads, counts=())
    counts = {int(str(of_trial.get("threads", 1))) for of_trial in options}
    by_default = known.threads == "any" and not any("threads" in of_trial for of_trial in options)
    return ThreadsRun(contestant=name, model=known.threads, counts=tuple(sorted(counts)), by_default=by_default)


def _single_threaded(trials: Sequence[Trial], about: Mapping[str, About]) -> set[str]:
    """Return the servers of the user's own of which the kernel never saw a second thread."""
    seen: dict[str, set[int]] = {}
    for trial in trials:
        known = about.get(trial.contestant)
        if known is not None and known.own is not None and trial.server is not None:
            seen.setdefault(trial.contestant, set()).add(trial.server.threads)
    return {name for name, threads in seen.items() if threads == {1}}


def _usable(wanted: Settings, trial: Trial, known: About | None, cores: int) -> int:
    """Return on how many cores a server could work at a time in a trial: it has so many, no more than it has threads
    that serve, and no more than connections, each of which one thread serves at a time. Where its threads are not
    known, nothing says that it could not use all of its cores."""
    model = known.threads if known is not None else None
    threads = int(all_options(wanted.server, trial.added).get("threads", 1)) if model in ("any", "one") else cores
    return min(cores, threads, wanted.connections)


def _together(usable: Usable) -> tuple[Together, ...]:
    """Who has the same at all levels that both were run at. First come those who have somebody to be compared with, of
    these who could use most cores. Who was run at more levels decides before others, who may fit several."""
    groups: list[tuple[dict[str, frozenset[int]], list[str]]] = []
    for name, by_level in sorted(usable.items(), key=lambda one: (-len(one[1]), one[0])):
        for merged, names in groups:
            if all(merged.get(level, cores) == cores for level, cores in by_level.items()):
                merged.update(by_level)
                names.append(name)
                break
        else:
            groups.append((dict(by_level), [name]))
    found = [Together(cores=_numbers(merged.values()), contestants=tuple(sorted(names))) for merged, names in groups]
    return tuple(sorted(found, key=_order))


def _order(group: Together) -> tuple[bool, int, tuple[Name, ...]]:
    return len(group.contestants) == 1, -max(group.cores, default=0), group.contestants


def _numbers(each: Iterable[frozenset[int]]) -> tuple[int, ...]:
    return tuple(sorted(frozenset[int]().union(*each)))
