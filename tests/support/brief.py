"""The command line, whose runs retry no trial, draw no report and describe no code: `python tests/support/brief.py
WORD...`. Each takes longer than the trials of a small run, and belongs to tests that look at it."""

import sys
from types import ModuleType

from netdyno.measure.run import schedule
from netdyno.question.contestants import codesize
from netdyno.verbs.cli import main

if __name__ == "__main__":
    undrawn = ModuleType("netdyno.present.report")  # which loads Matplotlib
    vars(undrawn)["write_page"] = lambda _analysis, path, *_: path.touch()
    sys.modules[undrawn.__name__] = undrawn
    schedule.RETRIES_PER_CELL = 0
    vars(codesize)["describe"] = lambda _servers, _clients: ()
    sys.exit(main())
