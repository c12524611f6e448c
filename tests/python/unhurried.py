"""`python -m netdyno` where no busy machine has a word in a verdict: how late the harness may read, and what it may use
itself, is tested on made-up figures (test_audits.py)."""

from __future__ import annotations

import sys

from netdyno import audits

BOUNDS_S = {"WINDOW_FLOOR_S": 600.0, "HARNESS_FLOOR_S": 600.0}
"""What these bounds of audits.py are where programs are fakes."""

if __name__ == "__main__":
    from netdyno.cli import main

    for name, value_s in BOUNDS_S.items():
        assert hasattr(audits, name)
        setattr(audits, name, value_s)
    sys.exit(main())
