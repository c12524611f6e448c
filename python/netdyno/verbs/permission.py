"""Ask the user before a stored run starts or loads anything of its own: its file may come from a stranger."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence

import msgspec

from netdyno.kit.errors import UserError, did_you_mean
from netdyno.kit.escape import harmless
from netdyno.kit.paths import ENTRY
from netdyno.model import own_requests
from netdyno.model.contestant import OWN_SETTINGS, About, Own
from netdyno.model.options import REQUESTS
from netdyno.model.run import OF_CLUSTER, Run
from netdyno.model.values import list_flags
from netdyno.question.contestants import own
from netdyno.verbs import own_servers
from netdyno.verbs.flags import GivenOptions

HARMLESS = ("--verify=", "--tls", "--ready-path=", "--ready-timeout=")
"""The beginnings of options that start nothing and change nothing in a server."""


class Given(msgspec.Struct, frozen=True):
    """The servers that the user names again, as for `run`: command lines, addresses, and whether those beyond the
    loopback may be loaded; and what these servers are sent and how they are started, as words of options."""

    commands: tuple[str, ...] = ()
    addresses: tuple[str, ...] = ()
    may_be_loaded: bool = False
    further: tuple[str, ...] = ()


def read_given(given: GivenOptions) -> Given:
    """Return the servers that the options of a command line name, at each level of their knobs."""
    description = own_servers.describe(given)
    servers, _ = own_servers.list_servers(description)
    fields = {REQUESTS[name].field: value for name, value in description.requests.items()}
    words = own_requests.list_options(own_requests.OwnRequests(**fields))
    settings = {OWN_SETTINGS[name].field: value for name, value in description.settings.items()}
    words += list_flags(OWN_SETTINGS, settings)
    commands = tuple(server.command for server in servers if not server.address)
    return Given(commands, description.addresses, description.may_be_loaded, tuple(words))


def ask(run: Run, given: Given, again: Sequence[str]) -> None:
    """Raise UserError unless the user allows what the run would start and load beside the servers of this repository:
    either all of it is named again word for word, or a question on a terminal is answered with yes. `again` is the
    command line so far, to which a message adds the missing options."""
    stored = select_own_servers(run)
    if given.commands or given.addresses:
        _check_given(stored, given)
        _check_further_options(run, given)
        return
    if not stored:
        return
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise UserError(
            f"the run {run.run_id} would start or load what its file says, and there is no terminal to ask you. "
            f"To allow that, run: {shlex.join([*again, *format_options(stored), *list_further_options(run)])}"
        )
    print(f"Resuming {harmless(run.run_id)} would start or load what its file says:", file=sys.stderr)
    for server in stored:
        print(f"  {harmless(f'{server.name}: {shlex.join(format_options([server]))}')}", file=sys.stderr)
    if words := list_further_options(run):
        print(f"  {harmless(shlex.join(words))}", file=sys.stderr)
    print("Do you want that? [y/N] ", end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise UserError("nothing was started")


def select_own_servers(run: Run) -> tuple[About, ...]:
    """Return the servers of a stored run that some scenario names and that are in no folder of this repository."""
    named = {name for scenario in run.experiment.scenarios for name in scenario.contestants}
    return tuple(about for about in run.about if about.own is not None and about.name in named)


def resume_line(run: Run) -> str:
    """Return the command line that resumes a run from any folder."""
    where = ("--cluster", "DIR") if OF_CLUSTER in run.environment else ()
    return shlex.join(
        [
            ENTRY,
            "resume",
            run.run_id,
            *where,
            *format_options(select_own_servers(run)),
            *list_further_options(run),
        ]
    )


def format_options(servers: Sequence[About]) -> list[str]:
    """Return the options that name these servers again. The permission to load beyond the loopback is the user's to
    add."""
    return [word for server in servers if server.own is not None for word in _format_option(server.own)]


def _format_option(server: Own) -> tuple[str, str]:
    return ("--address", server.address) if server.address else ("--server", server.command)


def list_further_options(run: Run) -> list[str]:
    """Return the options that say again what the user's own servers are sent, and how they are started; none for `GET
    /` and the defaults."""
    servers = select_own_servers(run)
    own_names = {server.name for server in servers}
    scenarios = [scenario for scenario in run.experiment.scenarios if own_names.intersection(scenario.contestants)]
    words = [word for scenario in scenarios for word in own_requests.list_options(scenario) if word != "--path=/"]
    for server in servers:
        words += list_flags(OWN_SETTINGS, msgspec.structs.asdict(server.own)) if server.own is not None else ()
    return [word for word in dict.fromkeys(words) if not word.startswith(HARMLESS)]


def _check_further_options(run: Run, given: Given) -> None:
    """Raise UserError where the run would send or set what is not named."""
    for word in list_further_options(run):
        if word not in given.further:
            raise UserError(f"the run also has this option, which is not named: {shlex.join([word])}")


def _check_given(stored: Sequence[About], given: Given) -> None:
    """Raise UserError where the named servers are not exactly those of the run."""
    stored_options = {_format_option(server.own) for server in stored if server.own is not None}
    given_options = {("--server", line) for line in given.commands}
    given_options |= {
        _format_option(own.resolve_server(address, "", may_be_loaded=given.may_be_loaded))
        for address in given.addresses
    }
    for option, text in sorted(stored_options - given_options):
        raise UserError(f"the run also has this server, which is not named: {shlex.join([option, text])}")
    for option, text in sorted(given_options - stored_options):
        raise UserError(
            f"{option} {text!r}: the run has no such server{did_you_mean(text, [url for _, url in stored_options])}"
        )
