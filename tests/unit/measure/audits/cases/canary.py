from netdyno.model.load_result import Audit
from netdyno.model.trial import Trial
from tests.support.builders.made_canary import judge, of_speeds


def find_canary_audit(trial: Trial) -> Audit:
    """The audit of the canary."""
    (audit,) = [audit for audit in trial.audits if audit.name == "canary"]
    return audit


def fails() -> Audit:
    """In the middle of its block the machine was half as fast."""
    return find_canary_audit(judge(of_speeds([[1.0] * 4 + [0.5] + [1.0] * 4]))[4])


def passes() -> Audit:
    return find_canary_audit(judge(of_speeds([[1.0] * 9]))[4])
