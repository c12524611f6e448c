"""Stands on the server's host where the program of the load would, the generator or a client contestant: it has the
load made on others, and passes on what that says. The worker of this host is its way there, through a socket of
unix(7).

    stand_in.py SOCKET ASKED PROGRAM WORD... --json FILE [--events-fd N] [--client-processes N]

ASKED has what is known of the load beforehand (requests.LoadAsked), PROGRAM is a name that other hosts know. It is
started for each load, so it imports nothing that is not Python's."""

from __future__ import annotations

import json
import os
import socket
import sys
from pathlib import Path

GENERATOR = "netdyno-load"
"""As in model/contestant.py."""


def main(arguments: list[str]) -> int:
    way, known, program, *words = arguments
    result = Path(take(words, "--json"))
    events_fd = int(take(words, "--events-fd", "-1"))
    processes = int(take(words, "--client-processes", "1"))
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(way)
        load = {"program": program, "processes": processes, "words": words, "events": events_fd >= 0}
        asked = {**json.loads(known), **load}
        connection.sendall(json.dumps(asked).encode() + b"\n")
        for line in connection.makefile("rb"):
            said = json.loads(line)
            if "event" in said:
                if events_fd >= 0:
                    os.write(events_fd, line)
            elif "lost" in said:
                sys.exit(said["lost"])
            else:
                sys.stderr.write(said["said"])
                if said["result"] is not None:
                    result.write_text(said["result"], encoding="utf-8")
                if said["code"] < 0:
                    name = "generator" if program == GENERATOR else f"client {program}"
                    sys.exit(f"the {name} was ended by signal {-said['code']}")
                return int(said["code"])
    sys.exit("this host's worker has left")


def take(words: list[str], option: str, default: str = "") -> str:
    """Return the value of an option, which is among the words no more; the default where it was not."""
    if option not in words:
        return default
    at = words.index(option)
    _, value = words[at : at + 2]
    del words[at : at + 2]
    return value


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
