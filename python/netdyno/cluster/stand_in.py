"""Stands on the server's host where the load generator would: it has the load made on others, and passes on what
that says. The worker of this host is its way there, through a socket of unix(7).

    stand_in.py SOCKET ASKED GENERATOR WORD... --json FILE [--events-fd N]

ASKED has what is known of the load beforehand (requests.LoadAsked). It is started for each load, so it imports
nothing that is not Python's."""

from __future__ import annotations

import json
import os
import socket
import sys
from pathlib import Path


def main(arguments: list[str]) -> int:
    way, known, _, *words = arguments
    events_fd = None
    if "--events-fd" in words:
        at = words.index("--events-fd")
        events_fd = int(words[at + 1])
        del words[at : at + 2]
    at = words.index("--json")
    result = Path(words[at + 1])
    del words[at : at + 2]
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(way)
        asked = {**json.loads(known), "words": words, "events": events_fd is not None}
        connection.sendall(json.dumps(asked).encode() + b"\n")
        for line in connection.makefile("rb"):
            said = json.loads(line)
            if "event" in said:
                if events_fd is not None:
                    os.write(events_fd, line)
            elif "lost" in said:
                sys.exit(said["lost"])
            else:
                sys.stderr.write(said["said"])
                if said["result"] is not None:
                    result.write_text(said["result"], encoding="utf-8")
                if said["code"] < 0:
                    sys.exit(f"the generator was ended by signal {-said['code']}")
                return int(said["code"])
    sys.exit("this host's worker has left")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
