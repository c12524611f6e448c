"""The request of the stand-in for a load to its host's worker, and its use of the answer."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from netdyno.measure.cluster import load_stand_in
from netdyno.measure.cluster.requests import LoadEnded, LoadRequest
from netdyno.measure.cluster.trial_helper import STAND_IN
from netdyno.model.contestant import GENERATOR
from tests.support.patience import PATIENCE_S

KNOWN = json.dumps({"hosts": [], "foreign_load": "count"})


class Answered:
    """A stand-in to which a worker has answered: what it asked for, how it ended, what it said, and its result."""

    def __init__(self, folder: Path, words: tuple[str, ...], answer: LoadEnded) -> None:
        result, way = folder / "result.json", folder / "way"
        command = [sys.executable, "-I", "-S", str(STAND_IN), str(way), KNOWN, *words, "--json", str(result)]
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(str(way))
            listener.listen()
            listener.settimeout(PATIENCE_S)
            with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
                connection, _ = listener.accept()
                with connection, connection.makefile("rb") as lines:
                    self.asked = msgspec.json.decode(lines.readline(), type=LoadRequest)
                    connection.sendall(msgspec.json.encode(answer) + b"\n")
                _, self.stderr = process.communicate(timeout=PATIENCE_S)
        self.code = process.returncode
        self.result = result.read_text() if result.exists() else None


def test_a_client_contestant_is_requested_by_its_name_with_the_number_of_its_processes(tmp_path: Path) -> None:
    words = ("asyncio", "tcp://10.0.0.2:7000", "-c", "4", "--client-processes", "2", "--linger", "50ms")
    answered = Answered(tmp_path, words, LoadEnded(code=0, output="", result="{}"))
    assert (answered.asked.program, answered.asked.processes, answered.asked.events) == ("asyncio", 2, False)
    assert answered.asked.words == ("tcp://10.0.0.2:7000", "-c", "4", "--linger", "50ms")
    assert (answered.code, answered.stderr, answered.result) == (0, "", "{}")


@pytest.mark.parametrize(("program", "name"), [(GENERATOR, "generator"), ("asyncio", "client asyncio")])
def test_a_program_that_a_signal_ended_is_named(program: str, name: str, tmp_path: Path) -> None:
    answered = Answered(tmp_path, (program, "tcp://10.0.0.2:7000"), LoadEnded(code=-9, output="words\n", result=None))
    assert (answered.code, answered.stderr) == (1, f"words\nthe {name} was ended by signal 9\n")
    assert answered.asked.processes == 1


def test_it_knows_the_generator_by_the_name_that_the_harness_has_for_it() -> None:
    assert load_stand_in.GENERATOR == GENERATOR
