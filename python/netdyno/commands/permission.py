"""What a stored run would start or load is the user's to say: its file may be anybody's."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from typing import NamedTuple

from netdyno.base.errors import UserError, did_you_mean
from netdyno.base.escape import harmless
from netdyno.contestants import own
from netdyno.model.contestant import About, Own
from netdyno.model.run import OF_CLUSTER, Run


class Given(NamedTuple):
    """The servers that the user names again, as for `run`: command lines, addresses, and whether those beyond the
    loopback may be loaded."""

    commands: tuple[str, ...] = ()
    addresses: tuple[str, ...] = ()
    may_be_loaded: bool = False


def ask(run: Run, given: Given, again: Sequence[str]) -> None:
    """Raise UserError unless the user wants just what the run would start and load beside the servers of this
    repository: given again word for word, or, on a terminal, answered with yes. `again` is the command line so far,
    to which what is missing is added."""
    stored = own_servers(run)
    if given.commands or given.addresses:
        _check(stored, given)
        return
    if not stored:
        return
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise UserError(
            f"the run {run.run_id} would start or load what its file says, and there is no terminal to ask you. "
            f"To allow it, name it: {shlex.join([*again, *words(stored)])}"
        )
    print(f"To go on with {harmless(run.run_id)}, what its file says is started or loaded:", file=sys.stderr)
    for one in stored:
        print(f"  {harmless(f'{one.name}: {shlex.join(words([one]))}')}", file=sys.stderr)
    print("Do you want that? [y/N] ", end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise UserError("nothing was started")


def own_servers(run: Run) -> tuple[About, ...]:
    """The servers of a stored run that are of no folder of this repository, and that some scenario names."""
    named = {name for scenario in run.experiment.scenarios for name in scenario.contestants}
    return tuple(one for one in run.about if one.own is not None and one.name in named)


def resume_line(run: Run) -> str:
    """The command line that goes on with a run, wherever it is given."""
    where = ("--cluster", "DIR") if OF_CLUSTER in run.environment else ()
    return shlex.join(["./netdyno", "resume", run.run_id, *where, *words(own_servers(run))])


def words(servers: Sequence[About]) -> list[str]:
    """The options that name these servers again. That one beyond the loopback may be loaded is not said for the
    user."""
    return [word for one in servers if one.own is not None for word in _option(one.own)]


def _option(server: Own) -> tuple[str, str]:
    return ("--address", server.address) if server.address else ("--server", server.command)


def _check(stored: Sequence[About], given: Given) -> None:
    """Raise UserError where what is given is not just what the run has."""
    has = {_option(one.own) for one in stored if one.own is not None}
    named = {("--server", line) for line in given.commands}
    named |= {_option(own.at(address, "", may_be_loaded=given.may_be_loaded)) for address in given.addresses}
    for option, text in sorted(has - named):
        raise UserError(f"the run has this server, too, and it is not named: {shlex.join([option, text])}")
    for option, text in sorted(named - has):
        raise UserError(f"{option} {text!r}: the run has no such server{did_you_mean(text, [one for _, one in has])}")
