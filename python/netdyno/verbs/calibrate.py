"""`netdyno calibrate`: run the cases and show the card."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence

from rich.console import Console

from netdyno.kit.errors import UserError
from netdyno.kit.paths import build_dir, generator_path
from netdyno.measure.machine import pinning
from netdyno.measure.machine.process import REALTIME_PRIORITY
from netdyno.question.contestants import building, contestants
from netdyno.verbs.instruments.calibrate import card, others
from netdyno.verbs.instruments.calibrate.cases import CASES
from netdyno.verbs.instruments.calibrate.running import ABOVE_OTHER_RUNS, CalibrationPrograms, attempt, run_all


def run(other_outputs: Sequence[str], as_json: bool) -> int:
    """Calibrate. Return 0 when every case passed, 1 otherwise. Progress goes to stderr. Raises UserError."""
    other_results = [others.read(option) for option in other_outputs]
    programs = _find_programs()
    console = Console(stderr=True)
    beginning = "netdyno: calibrating the load generator, up to three minutes."
    console.print(f"{beginning} {programs.pinning.note}.", soft_wrap=True)
    results = run_all(
        CASES, lambda case: attempt(case, programs), lambda text: console.print(f"  {text}", highlight=False)
    )
    if as_json:
        print(json.dumps(card.as_json(results, other_results, programs.pinning.note)))
    else:
        Console(file=sys.stdout, highlight=False).print(card.render(results, other_results, programs.pinning.note))
    return 0 if all(result.passed for result in results) else 1


def _find_programs() -> CalibrationPrograms:
    build = build_dir()
    names = sorted({case.program for case in CASES})
    building.make((building.GENERATOR, *names), build)
    known = contestants.discover(build=build)
    servers = {name: contestants.find_by_name(known, name) for name in names}
    for name, server in servers.items():
        if not server.available:
            raise UserError(f"{name} cannot be started: {server.why_not}")
    generator = generator_path(build)
    if not generator.is_file():
        raise UserError(f"the load generator is not built: {generator} is missing (run ./netdyno, which builds it)")
    commands = {name: server.command for name, server in servers.items()}
    priority = ABOVE_OTHER_RUNS if pinning.may_run_realtime(ABOVE_OTHER_RUNS) else REALTIME_PRIORITY
    cores = pinning.narrow(pinning.choose())  # of programs with one thread each, so that the core of each is known
    return CalibrationPrograms(commands, (str(generator),), cores, priority)
