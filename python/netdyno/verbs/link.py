"""`netdyno link`: join two private networks by hand, to use servers over the link until it is interrupted."""

from __future__ import annotations

import shlex
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial

from netdyno.kit import quantities
from netdyno.kit.errors import UserError
from netdyno.kit.paths import ENTRY, build_dir
from netdyno.kit.temporary import temporary_folder
from netdyno.measure.machine.links import lan, link_check, wan
from netdyno.measure.machine.links.lan import Lan
from netdyno.measure.machine.links.namespace import NotAllowedError
from netdyno.measure.machine.links.network import derive_terms, find_rate_hz
from netdyno.measure.machine.links.wan import UNPINNED, Wan
from netdyno.measure.machine.trial_log import TrialLog
from netdyno.measure.run.interrupts import Interrupted, raise_on_signals
from netdyno.model.experiment import Scenario
from netdyno.model.links import Link
from netdyno.model.observation import RelayTotals
from netdyno.model.options import LINK, Settings, settings
from netdyno.model.transports import LOAD_ADDRESS, SERVER_ADDRESS
from netdyno.question.contestants import building
from netdyno.verbs.flags import GivenOptions

PORT = 7000
"""The port of the server in the printed example."""


def run(options: GivenOptions) -> int:
    """Make the link, measure it, print how to enter its ends, and keep it until it is interrupted. Raises UserError."""
    link_settings = _build_settings(options)
    if link_settings.is_impaired:
        building.make((building.RELAY,), build_dir())
    with temporary_folder("link") as folder:
        try:
            with _join(link_settings, TrialLog(folder / "link.log")) as link:
                line = _measure_link(link_settings, link)
                _show_until_interrupted(f"{line}\n{explain_entry(Lan(link.server, link.load))}")
                if link.relay is not None:
                    print(_describe_totals(link.relay.end()))
        except NotAllowedError as error:
            raise UserError(f"the link {link_settings.link_words} is not available here: {error}") from error
    return 0


def _build_settings(options: GivenOptions) -> Settings:
    """Return the settings of the link: a wan where an option needs one."""
    fields = {LINK[f"link-{name}"].field: value for name, value in options.items()}
    scenario = Scenario(name="by hand", workload="echo", **fields)
    link_terms = derive_terms(settings(scenario, {}))
    kind: Link = "wan" if link_terms.delay_s or link_terms.loss else "lan"
    return settings(scenario, {"link": kind})


@contextmanager
def _join(link_settings: Settings, log: TrialLog) -> Iterator[Wan]:
    if not link_settings.is_impaired:
        with lan.make_link(find_rate_hz(link_settings)) as ends:
            yield Wan(*ends, relay=None)
    else:
        with wan.make_link(derive_terms(link_settings), log, UNPINNED) as link:
            yield link


def _measure_link(link_settings: Settings, link: Wan) -> str:
    """Measure the link and describe it; print a fault to stderr."""
    link_terms = derive_terms(link_settings)
    if not link_settings.is_impaired:
        return f"{link_settings.link_words}: {link_check.describe_measurement(link_check.measure(link, link_terms))}"
    line, fault = link_check.judge_link(
        link_settings.link_words, link_terms, partial(link_check.measure, link, link_terms)
    )
    if fault:
        print(f"netdyno: {fault}", file=sys.stderr)
    return line


def explain_entry(ends: Lan) -> str:
    """Return the prefix of a command at either end, with an example. Pure."""
    server, load = (shlex.join(end.enter) for end in ends)
    where = f"tcp://{SERVER_ADDRESS}:{PORT}"
    return (
        f"the server's end is {SERVER_ADDRESS}: put this before a command, such as a server\n"
        f"  {server} {ENTRY} serve threads-global-lock --listen {where}\n"
        f"the load's end is {LOAD_ADDRESS}:\n"
        f"  {load} {ENTRY} load {where}\n"
        "It is there until you press Ctrl-C, and ends whatever then runs at its ends."
    )


def _show_until_interrupted(text: str) -> None:
    """Print the text and wait; from then on, an interruption is the normal end."""
    with suppress(Interrupted), raise_on_signals():
        print(text, flush=True)
        while True:
            signal.pause()


def _describe_totals(totals: RelayTotals) -> str:
    """Describe the totals of the relay."""
    ways = ((totals.b_to_a, "to the server"), (totals.a_to_b, "to the load"))
    carried = "; ".join(
        f"{quantities.plural(way.frames_out, 'frame')} {where}, {way.lost} lost, {way.queue_full} dropped by the rate"
        for way, where in ways
    )
    return f"carried {carried}; 99% left within {quantities.duration(totals.late_ns.p99)} of their time"
