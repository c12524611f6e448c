"""How many cores a server had and how many threads each contestant ran: what a comparison could show at all. Facts
without words (ground_words.py has those). Pure functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from netdyno.model.base import Frozen, Name
from netdyno.model.contestant import About, stands_already
from netdyno.model.experiment import Scenario
from netdyno.model.options import settings
from netdyno.model.server_options import all_options
from netdyno.model.trial import Trial


class ThreadsRun(Frozen):
    """Threads of a contestant that serve connections, as its options say; others, such as one that accepts, are not
    among them. `model` is the manifest's `threads`. `counts` are the numbers of all its trials, each once: none for a
    thread per connection. `by_default`: nobody asked for a number, and one of any number is what it then has."""

    contestant: Name
    model: Literal["any", "one", "per-connection"]
    counts: tuple[int, ...]
    by_default: bool = False

    @property
    def alone(self) -> bool:
        """Whether one thread did all the work."""
        return self.counts == (1,)


class Ground(Frozen):
    """`server_cores`: how many cores the server had, each number once; none where no trial tells."""

    server_cores: tuple[int, ...]
    threads: tuple[ThreadsRun, ...]

    @property
    def parallel(self) -> bool:
        """Whether two threads of a server could ever run at the same time: without that no lock is contended but where
        its holder is switched out, and no second thread does more work than one."""
        return any(cores >= 2 for cores in self.server_cores)

    @property
    def held_to_one_core(self) -> tuple[ThreadsRun, ...]:
        """Who ran one thread where others had the use of several cores: what they differ by is then more than the
        model. Empty where all are alike."""
        alone = tuple(ran for ran in self.threads if ran.alone)
        return alone if self.parallel and len(alone) < len(self.threads) else ()


def ground_of(
    scenario: Scenario, trials: Sequence[Trial], about: Sequence[About], cores_allowed: int | None = None
) -> Ground:
    """Of some trials of a scenario; one that was skipped ran nothing and tells nothing. `about` says of each contestant
    what a stored run remembers: one of whose threads it says nothing (a run stored before that was recorded) is left
    out. `cores_allowed`: what a server that was not pinned could use, in the environment of the run by that name. Of
    one that stands already, and perhaps elsewhere, the cores are not known."""
    trials = [trial for trial in trials if trial.status != "skipped"]
    found_there = {one.name for one in about if stands_already(one)}
    cores = {
        len(trial.pinning.server) or cores_allowed
        for trial in trials
        if trial.pinning is not None and trial.contestant not in found_there
    }
    models = {one.name: one.threads for one in about if one.kind == "server"}
    by_name: dict[str, list[Mapping[str, object]]] = {}
    for trial in trials:
        options = all_options(settings(scenario, trial.levels).server, trial.added)
        by_name.setdefault(trial.contestant, []).append(options)
    ran = (_ran(name, models.get(name), options) for name, options in sorted(by_name.items()))
    return Ground(
        server_cores=tuple(sorted(count for count in cores if count is not None)),
        threads=tuple(one for one in ran if one is not None),
    )


def _ran(
    name: str, model: Literal["any", "one", "per-connection"] | None, options: Sequence[Mapping[str, object]]
) -> ThreadsRun | None:
    if model is None:
        return None
    if model == "per-connection":
        return ThreadsRun(contestant=name, model=model, counts=())
    counts = {int(str(said.get("threads", 1))) for said in options}
    by_default = model == "any" and not any("threads" in said for said in options)
    return ThreadsRun(contestant=name, model=model, counts=tuple(sorted(counts)), by_default=by_default)
