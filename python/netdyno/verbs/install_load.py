"""`install-load PREFIX`: install the load generator alone, from the build for other machines (the preset `load`)."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from netdyno.kit import quantities
from netdyno.kit.errors import UserError
from netdyno.kit.escape import harmless
from netdyno.kit.paths import build_dir, generator_path
from netdyno.question.contestants import building


def run(prefix: Path) -> int:
    """Build the generator if it is not up to date, and install it without symbols."""
    build, prefix = build_dir(), prefix.expanduser().absolute()
    building.make((building.GENERATOR,), build)
    if not generator_path(build).is_file():
        raise UserError(f"the load generator is not built: {generator_path(build)} is missing")
    command = ["cmake", "--install", str(build), "--prefix", str(prefix), "--strip"]
    try:
        finished = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError as error:
        raise UserError(f"{command[0]} cannot be started: {error.strerror}") from error
    if finished.returncode:
        raise UserError(f"cannot install into {prefix}: {' '.join(finished.stderr.split())}")
    program = prefix / "bin" / building.GENERATOR
    print(harmless(f"{program} ({quantities.memory(program.stat().st_size)})"))
    if str(program.parent) not in os.environ.get("PATH", "").split(os.pathsep):
        print(harmless(f"netdyno: {program.parent} is not on PATH"), file=sys.stderr)
    return 0
