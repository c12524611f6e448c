"""Draws the terminal of a stored run as an SVG: the command, and the answer to its first question.

.venv/bin/python bench/terminal_picture.py RUN 'COMMAND' >docs/run.svg"""

from __future__ import annotations

import argparse
import io
import re
import sys
from pathlib import Path

from msgspec.structs import replace
from rich._export_format import CONSOLE_SVG_FORMAT
from rich.text import Text

from netdyno.analysis.analysis import analyse
from netdyno.kit.paths import RESULTS
from netdyno.present.terminal.console import Console
from netdyno.present.terminal.table import draw_scenario
from netdyno.store import read

COLUMNS = 80


def draw(run: str, command: str) -> str:
    """Return the SVG. It asks no other host for a font."""
    analysis = analyse(read.load(read.find(RESULTS, run)))
    console = Console(file=io.StringIO(), record=True, width=COLUMNS, force_terminal=True)
    console.print(Text(f"$ {command}"))
    (first, *_) = analysis.scenarios
    for part in draw_scenario(replace(first, whys=())):
        console.print(part)
    console.print(Text(f"report: {Path('results', analysis.run_id, 'report.html')}"))
    frame = re.sub(r"@font-face \{\{.*?\}\}\n|<!-- .*? -->", "", CONSOLE_SVG_FORMAT, flags=re.DOTALL)
    return console.export_svg(title="netdyno", code_format=frame, unique_id="netdyno")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", help="its id, or its folder")
    parser.add_argument("command", help="what was typed")
    given = parser.parse_args()
    sys.stdout.write(draw(given.run, given.command))
