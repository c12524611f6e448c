import msgspec

from netdyno.measure.audits.plausible import TrialResources, plausible
from netdyno.model.load_result import Audit
from tests.support.builders.made_load import load, observed

MODEM = TrialResources(server_cores=1, generator_cores=1, all_cores=2, copies_hz=1e10, rate_hz=56_000)


def fails() -> Audit:
    """31 kB a second came over a modem of 7 kB."""
    return plausible(load(), observed(), MODEM)


def passes() -> Audit:
    return plausible(load(), observed(), msgspec.structs.replace(MODEM, rate_hz=10_000_000))
