"""The cores of a server and the threads of each contestant.

Frozen data without words; units are in the names."""

from __future__ import annotations

from typing import Literal

from netdyno.model.base import Frozen, Name

Threads = Literal["any", "one", "per-connection"]
"""The field `threads` of a manifest."""


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
    """The cores of a scenario's server. `server_cores`: how many it had, each number once; none where no trial tells.
    `shared`: the load ran on these, too. `together`: all contestants by the cores that they could use, the group to be
    shown first at the head. `quota_cores`: how many cores' time a CPU quota left all programs of a trial; None: all."""

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
        """Return the index of a contestant's group in `together`; 0 for a contestant without trials."""
        return next((place for place, group in enumerate(self.together) if contestant in group.contestants), 0)
