from netdyno.model.load_result import Audit
from netdyno.model.trial import Trial
from tests.support.builders.made_canary import judge, of_speeds


def of(trial: Trial) -> Audit:
    """What the canary said of it."""
    (found,) = [audit for audit in trial.audits if audit.name == "canary"]
    return found


def struck_out() -> Audit:
    """In the middle of its block the machine was half as fast."""
    return of(judge(of_speeds([[1.0] * 4 + [0.5] + [1.0] * 4]))[4])


def passes() -> Audit:
    return of(judge(of_speeds([[1.0] * 9]))[4])
