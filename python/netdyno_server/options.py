"""The options that every server takes, as the launcher hands them over: protocol/WIRE.md, "Options".

Most starts of a server in the tests end here, so this imports nothing that takes time."""

from __future__ import annotations

import json
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


class Options:
    """Read once, never changed. Sizes are bytes, durations nanoseconds; `service_kind` is the effect of that name."""

    def __init__(self, program: str, resolved: str) -> None:
        """From one JSON object."""
        given = json.loads(resolved)
        self.program = program
        self.listen: tuple[str, int] = (given["host"], given["port"])
        self.workload: str = given["workload"]
        self.backlog: int = given["backlog"]
        self.nodelay: bool = given["nodelay"]
        self.read_buffer: int = given["read_buffer"]
        self.split: bool = given["write_mode"] == "split"
        self.to_all: bool = given["audience"] == "all"
        self.single: bool = given["deliveries"] == "single"
        self.service_time: int = given["service_time_ns"]
        self.service_kind: str = "burn" if given["service_kind"] == "cpu" else "wait"
        self.max_frame: int = given["max_frame"]
        self.outbox_limit: int = given["outbox_limit"]


def options_or_exit(command_line: Sequence[str]) -> Options:
    """Ends the program with exit 2 where it was not started by the launcher. A server is called as its folder."""
    program = os.path.basename(os.path.dirname(os.path.abspath(command_line[0])))  # noqa: PTH119, PTH120, PTH100
    if len(command_line) != 2 or not command_line[1].startswith("{"):
        print(f"{program}: wants its resolved options as one JSON argument: ./netdyno serve {program}", file=sys.stderr)
        sys.exit(2)
    return Options(program, command_line[1])
