"""Readings of the canary, and runs that have them: nothing was measured, and what is true of the machine is known."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta

from msgspec.structs import replace

from netdyno.measure.audits.canary_audit import CanaryJudge
from netdyno.measure.trial.canary import Canary, CanaryOutcome
from netdyno.model.experiment import Experiment, Scenario
from netdyno.model.observation import CanaryReading, CanaryReadings, ForeignLoad, HostCanary
from netdyno.model.run import Run
from netdyno.model.trial import Status, Trial
from tests.support.builders.made_run import made_run

ROUND_TRIPS, STEPS = 20_000.0, 900.0
BEGAN = datetime(2025, 1, 1, 12, tzinfo=UTC)
TRIAL_S = 2.7


def reading(speed: float = 1.0, *, server: float | None = None, generator: float | None = None) -> CanaryReading:
    """Return the reading of a machine of this speed; a core may have a speed of its own."""
    return CanaryReading(
        round_trips_per_second=ROUND_TRIPS * speed,
        server_millions_per_second=STEPS * (speed if server is None else server),
        generator_millions_per_second=STEPS * (speed if generator is None else generator),
        seconds=0.03,
        one_core_round_trips_per_second=5 * ROUND_TRIPS * speed,
    )


def trial(
    block: int,
    position: int,
    before: float | CanaryReading = 1.0,
    after: float | CanaryReading | None = None,
    *,
    status: Status = "valid",
    contestant: str = "a",
) -> Trial:
    """One without figures, beside which the machine had these speeds."""
    first = before if isinstance(before, CanaryReading) else reading(before)
    second = first if after is None else after if isinstance(after, CanaryReading) else reading(after)
    return Trial(
        block=block,
        position=position,
        scenario="echo",
        contestant=contestant,
        levels={},
        status=status,
        reason="",
        started_at=BEGAN.isoformat(),
        seconds=TRIAL_S,
        canary=CanaryReadings(before=first, after=second),
    )


class SteadyCanary(Canary):
    """In place of the canary's program: it reads the same beside every trial."""

    def __init__(self, *_: object) -> None: ...

    def begin(self) -> CanaryOutcome:
        """Return the reading of a steady machine."""
        return reading(), ""

    def end(self, begun: CanaryOutcome) -> CanaryReadings:
        """Return two equal readings."""
        return CanaryReadings(before=begun[0], after=begun[0])


def beside(host: str, speed: float) -> HostCanary:
    """Readings of a host of the load."""
    return HostCanary(host=host, readings=CanaryReadings(before=reading(speed), after=reading(speed)))


def of_speeds(blocks: Sequence[Sequence[float]]) -> list[Trial]:
    """Trials one after the other, each block by the speeds of the machine before its trials. The reading after a trial
    is the one before the next."""
    flat = [(block, position, speed) for block, row in enumerate(blocks, 1) for position, speed in enumerate(row)]
    speeds = [speed for _, _, speed in flat]
    ends = itertools.pairwise([*speeds, speeds[-1]])
    return [
        replace(trial(block, position, before, after), started_at=_started(number))
        for number, ((block, position, _), (before, after)) in enumerate(zip(flat, ends, strict=True))
    ]


def _started(number: int) -> str:
    return (BEGAN + timedelta(seconds=TRIAL_S * number)).isoformat()


def judge_canary(trials: Iterable[Trial], foreign_load: ForeignLoad = "strike-out") -> list[Trial]:
    """As a run would have judged them, in their order."""
    stored: dict[tuple[int, int], Trial] = {}

    def revise(judged: Sequence[Trial]) -> None:
        assert judged
        stored.update({(measured.block, measured.position): measured for measured in judged})

    judging = CanaryJudge(foreign_load, revise)
    for _, block in itertools.groupby(trials, key=lambda measured: measured.block):
        for measured in block:
            stored[measured.block, measured.position] = measured
            judging.add(measured)
        judging.judge()
    judging.judge(run_ended=True)
    return list(stored.values())


def run_of(trials: Sequence[Trial]) -> Run:
    """A run of nothing but these."""
    experiment = Experiment(name="made", question="How fast?", scenarios=(Scenario(name="echo", workload="echo"),))
    return Run(
        run_id="r1",
        experiment=experiment,
        started_at=BEGAN.isoformat(),
        finished_at=None,
        environment={},
        trials=tuple(trials),
    )


def drifting_run() -> Run:
    """The made run on a machine that drifts by a factor of two from the first block to the last, and stands still for
    three trials of its second block, which are invalid."""
    run = made_run()
    trials: list[Trial] = []
    for number, measured in enumerate(run.trials):
        still = measured.block == 2 and len([earlier for earlier in trials if earlier.block == 2]) in (3, 4, 5)
        speed = 2.0 ** -((measured.block - 1) / (run.experiment.blocks - 1)) * (0.4 if still else 1.0)
        position = sum(earlier.block == measured.block for earlier in trials)
        moved = replace(measured, position=position, started_at=_started(number))
        if measured.status != "skipped":
            moved = replace(moved, canary=CanaryReadings(before=reading(speed), after=reading(speed)))
        trials.append(moved)
    return replace(run, trials=tuple(judge_canary(trials)))
