"""The advice from a stored run. Pure functions."""

from __future__ import annotations

from dataclasses import replace

from netdyno.analysis.advice.found import Advice
from netdyno.analysis.advice.judge import judge
from netdyno.analysis.analysis import analyse
from netdyno.analysis.split import split
from netdyno.model import outcomes
from netdyno.model.run import Run


def derive_advice(run: Run) -> Advice | None:
    """Return the advice of a run; None where it was to give none."""
    if run.experiment.advise is None:
        return None
    (part,) = split(outcomes.judged(run))
    analysis = analyse(run)
    advice = judge(run.experiment.advise, analysis.scenarios[0], part)
    return replace(advice, foreign=analysis.machine.foreign_median if analysis.machine else 0.0)
