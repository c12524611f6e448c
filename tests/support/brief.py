"""The command line, whose runs make no trial again and draw no report: `python tests/support/brief.py WORD...`. Both
take longer than the trials of a small run, and belong to tests that look at them."""

import sys
from types import ModuleType

from netdyno.commands.cli import main
from netdyno.run import schedule

if __name__ == "__main__":
    undrawn = ModuleType("netdyno.present.report")  # which loads Matplotlib
    vars(undrawn)["write_page"] = lambda _analysis, path, *_: path.touch()
    sys.modules[undrawn.__name__] = undrawn
    schedule.MADE_AGAIN_PER_CELL = 0
    sys.exit(main())
