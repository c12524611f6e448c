"""A small canary that says what netdyno-canary would. FAKE_CANARY makes it misbehave, or names a file with its speeds:
each call takes the first of them away, and the last stays."""

import json
import os
import sys
from pathlib import Path

MODE = os.environ.get("FAKE_CANARY", "good")

if MODE == "fails":
    sys.exit("netdyno-canary: cannot have real-time priority")
if MODE == "unreadable":
    print("{")
    sys.exit()
speed = 1.0
if MODE.startswith("speeds:"):
    file = Path(MODE.removeprefix("speeds:"))
    first, *rest = file.read_text().split()
    file.write_text(" ".join(rest or [first]))
    speed = float(first)
said = {
    "round_trips_per_second": 20_000 * speed,
    "server_millions_per_second": 900 * speed,
    "generator_millions_per_second": 900 * speed,
    "seconds": 0.03,
}
print(json.dumps(said))
