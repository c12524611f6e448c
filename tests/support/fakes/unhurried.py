"""`python -m netdyno` for fake programs. No busy machine has a word in a verdict: how late the harness may read, and
what it may use itself, is tested on made-up figures (test_of_trial.py). And the fakes get their behaviour by variables,
which programs of a trial otherwise do not get (test_program_settings.py)."""

from __future__ import annotations

import sys

from netdyno.measure.audits import of_trial
from netdyno.measure.machine import program_settings

BOUNDS_S = {"WINDOW_FLOOR_S": 600.0, "HARNESS_FLOOR_S": 600.0}
"""What these bounds of measure/audits/of_trial.py are where programs are fakes."""
PASSED_ON = (*program_settings.PASSED_ON, "FAKE_SERVER", "FAKE_LOAD", "FAKE_CLIENT", "FAKE_CANARY", "FAKE_SEED")
"""What fakes have of the environment."""

if __name__ == "__main__":
    from netdyno.verbs.cli import main

    for name, value_s in BOUNDS_S.items():
        assert hasattr(of_trial, name)
        setattr(of_trial, name, value_s)
    program_settings.PASSED_ON = PASSED_ON
    sys.exit(main())
