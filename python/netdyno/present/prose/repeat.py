"""The command lines that repeat a run, its report and one of its trials. Pure functions."""

from __future__ import annotations

import shlex
from dataclasses import dataclass

from netdyno.analysis.findings import Analysis
from netdyno.contestants import stand_in
from netdyno.model.load_result import LoadResult
from netdyno.model.options import Settings, settings
from netdyno.model.run import OF_CLUSTER
from netdyno.model.transports import LOOPBACK_ADDRESS
from netdyno.model.trial import Trial
from netdyno.present.prose.capacity_again import again
from netdyno.trial.command import by_hand


@dataclass(frozen=True)
class Command:
    """A command line to repeat something, and what it repeats."""

    purpose: str
    line: str


def commands(analysis: Analysis) -> tuple[Command, ...]:
    where = " --cluster DIR" if OF_CLUSTER in analysis.environment else ""
    whole = Command("The whole run again", again(analysis.asked, analysis.about) + where)
    report = Command("This report again, from the stored run", f"./netdyno report {shlex.quote(analysis.run_id)}")
    trial = analysis.example
    return (whole, report, *(_by_hand(analysis, trial, trial.load) if trial is not None and trial.load else ()))


def _by_hand(analysis: Analysis, trial: Trial, load: LoadResult) -> tuple[Command, ...]:
    scenario = next(one for one in analysis.asked.scenarios if one.name == trial.scenario)
    wanted = settings(scenario, trial.levels, trial.warmup.seconds if trial.warmup else 0.0)
    endpoint, how = _endpoint(load.plan.url, wanted)
    server, client = by_hand(trial, endpoint, wanted, load.plan.seed)
    loading = Command(f"One trial by hand{how}: its load", shlex.join(client))
    for one in analysis.about:
        if one.name == trial.contestant and one.own is not None:
            if one.own.address:
                return (loading,)
            server = stand_in.filled(shlex.split(one.own.command), *stand_in.place(endpoint))
    return Command(f"One trial by hand{how}: the server", shlex.join(server)), loading


def _endpoint(url: str, wanted: Settings) -> tuple[str, str]:
    """Where a server that is started by hand listens, and how that differs from the trial: its link is gone with it."""
    if not wanted.is_apart:
        return url, ""
    scheme, _, place = url.partition("://")
    return f"{scheme}://{LOOPBACK_ADDRESS}:{place.rpartition(':')[2]}", ", over the loopback"
