"""The command line, whose runs retry no trial, draw no report and describe no code: `python tests/support/brief.py
WORD...`. Each takes longer than the trials of a small run, and belongs to tests that look at it. Under another name it
only leaves reports empty, for commands that are as usual else (test_documents.py)."""

import sys
from pathlib import Path
from types import ModuleType

undrawn = ModuleType("netdyno.present.report")  # the package itself loads Matplotlib
undrawn.__path__ = [str(Path(__file__).parents[2] / "python" / "netdyno" / "present" / "report")]
vars(undrawn).update(Overlaid=None, write_page=lambda _analysis, path, *_: path.touch(), render_html=lambda *_: "")
sys.modules[undrawn.__name__] = undrawn

if __name__ == "__main__":
    from netdyno.measure.run import schedule
    from netdyno.question.contestants import codesize
    from netdyno.verbs.cli import main

    schedule.RETRIES_PER_CELL = 0
    vars(codesize)["describe"] = lambda _servers, _clients: ()
    sys.exit(main())
