"""`netdyno link`: a link between two private networks by hand, for as long as one likes to look at servers over it."""

from __future__ import annotations

import shlex
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from types import FrameType

from netdyno.base import quantities
from netdyno.base.errors import UserError
from netdyno.base.paths import build_dir
from netdyno.base.temporary import temporary_folder
from netdyno.commands.flags import Asked
from netdyno.contestants import building
from netdyno.machine.links import lan, link_check, wan
from netdyno.machine.links.lan import Lan
from netdyno.machine.links.namespace import NotAllowedError
from netdyno.machine.links.network import rate_hz, terms
from netdyno.machine.links.wan import UNPINNED, Wan
from netdyno.machine.trial_log import TrialLog
from netdyno.model.experiment import Scenario
from netdyno.model.links import Link
from netdyno.model.observation import RelayTotals
from netdyno.model.options import LINK, Settings, settings
from netdyno.model.transports import LOAD_ADDRESS, SERVER_ADDRESS

PORT = 7000
"""Of the server in the example that is printed."""


def run(asked: Asked) -> int:
    """Make it, measure it, say how to get to its ends, and keep it until it is interrupted. Raises UserError."""
    wanted = _wanted(asked)
    if wanted.is_impaired:
        building.make((building.RELAY,), build_dir())
    with temporary_folder("link") as folder:
        try:
            with _joined(wanted, TrialLog(folder / "link.log")) as made:
                measured = _measured(wanted, made)
                _say_until_interrupted(f"{measured}\n{how_to_enter(Lan(made.server, made.load))}")
                if made.relay is not None:
                    print(_carried(made.relay.end()))
        except NotAllowedError as error:
            raise UserError(f"the link {wanted.link_words} is not available here: {error}") from error
    return 0


def _wanted(asked: Asked) -> Settings:
    """The link that the options mean: a wan where they ask for what only that has."""
    fields = {LINK[f"link-{name}"].field: value for name, value in asked.items()}
    scenario = Scenario(name="by hand", workload="echo", **fields)
    of = terms(settings(scenario, {}))
    kind: Link = "wan" if of.delay_s or of.loss else "lan"
    return settings(scenario, {"link": kind})


@contextmanager
def _joined(wanted: Settings, log: TrialLog) -> Iterator[Wan]:
    if not wanted.is_impaired:
        with lan.joined(rate_hz(wanted)) as ends:
            yield Wan(*ends, relay=None)
    else:
        with wan.joined(terms(wanted), log, UNPINNED) as made:
            yield made


def _measured(wanted: Settings, made: Wan) -> str:
    """What it gives, and what is wrong with that."""
    of = terms(wanted)
    if not wanted.is_impaired:
        return f"{wanted.link_words}: {link_check.in_words(link_check.measure(made, of))}"
    line, fault = link_check.judge(wanted.link_words, of, partial(link_check.measure, made, of))
    if fault:
        print(f"netdyno: {fault}", file=sys.stderr)
    return line


def how_to_enter(ends: Lan) -> str:
    """What stands before a command at either end, with an example. Pure."""
    server, load = (shlex.join(end.enter) for end in ends)
    where = f"tcp://{SERVER_ADDRESS}:{PORT}"
    return (
        f"the server's end is {SERVER_ADDRESS}: put this before a command, such as a server\n"
        f"  {server} ./netdyno serve threads-global-lock --listen {where}\n"
        f"the load's end is {LOAD_ADDRESS}:\n"
        f"  {load} ./netdyno load {where}\n"
        "It is there until you press Ctrl-C, and ends whatever then runs at its ends."
    )


def _say_until_interrupted(text: str) -> None:
    """From its first line on, an interruption is the end that was meant."""

    def interrupt(_number: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        print(text, flush=True)
        while True:
            signal.pause()
    except KeyboardInterrupt:
        return
    finally:
        signal.signal(signal.SIGTERM, before)


def _carried(totals: RelayTotals) -> str:
    """What the relay says at its end, for people."""
    ways = ((totals.b_to_a, "to the server"), (totals.a_to_b, "to the load"))
    carried = "; ".join(
        f"{quantities.plural(one.frames_out, 'frame')} {where}, {one.lost} lost, {one.queue_full} dropped by the rate"
        for one, where in ways
    )
    return f"carried {carried}; 99% left within {quantities.duration(totals.late_ns.p99)} of their time"
