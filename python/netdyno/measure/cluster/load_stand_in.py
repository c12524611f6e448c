"""A stand-in on the server's host for the program of the load, the generator or a client contestant: it has the load
made on other hosts, and passes on its output. It reaches them through the worker of this host, over a socket of
unix(7).

    load_stand_in.py SOCKET ASKED PROGRAM WORD... --json FILE [--events-fd N] [--client-processes N]

ASKED holds the fields of requests.LoadRequest that are known beforehand, PROGRAM is a name that other hosts know. It is
started for each load, so it imports Python's own modules only."""

from __future__ import annotations

import json
import os
import socket
import sys
from pathlib import Path

GENERATOR = "netdyno-load"
"""The name of the generator, as in model/contestant.py."""


def main(arguments: list[str]) -> int:
    way, known, program, *words = arguments
    result = Path(take(words, "--json"))
    events_fd = int(take(words, "--events-fd", "-1"))
    processes = int(take(words, "--client-processes", "1"))
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(way)
        load = {"program": program, "processes": processes, "words": words, "events": events_fd >= 0}
        request = {**json.loads(known), **load}
        connection.sendall(json.dumps(request).encode() + b"\n")
        for line in connection.makefile("rb"):
            message = json.loads(line)
            if "event" in message:
                if events_fd >= 0:
                    os.write(events_fd, line)
            elif "lost" in message:
                sys.exit(message["lost"])
            else:
                sys.stderr.write(message["output"])
                if message["result"] is not None:
                    result.write_text(message["result"], encoding="utf-8")
                if message["code"] < 0:
                    name = "generator" if program == GENERATOR else f"client {program}"
                    sys.exit(f"the {name} was ended by signal {-message['code']}")
                return int(message["code"])
    sys.exit("this host's worker has left")


def take(words: list[str], option: str, default: str = "") -> str:
    """Remove an option from the words and return its value; the default where it is missing."""
    if option not in words:
        return default
    position = words.index(option)
    _, value = words[position : position + 2]
    del words[position : position + 2]
    return value


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
