#!/usr/bin/env python3
"""change_points.py FILE: searches what `netdyno gate --history FILE` has kept for change points of the later server's
figures, by Apache Otava (uv tool install apache-otava). It decides nothing: the gates may have run on several machines,
and Otava knows no blocks."""

import csv
import json
import subprocess
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path

GROWS = ("throughput", "kept")
"""The metrics of which more is better."""

if len(sys.argv) != 2:
    sys.exit("usage: change_points.py FILE")
gates = [json.loads(line) for line in Path(sys.argv[1]).read_text().splitlines()]
series = [
    {f"{line['question']}, {line['metric']}": line["after"] for line in gate["lines"] if line["after"] is not None}
    for gate in gates
]
names = max(series, key=len, default={})
complete = [(gate, figures) for gate, figures in zip(gates, series, strict=True) if figures.keys() == names.keys()]
if not names or len(complete) < 2:
    sys.exit(f"change_points.py: {sys.argv[1]} holds fewer than two gates with the same figures")
if left_out := len(gates) - len(complete):
    print(f"change_points.py: {left_out} of {len(gates)} gates lack a figure, and are left out", file=sys.stderr)
with tempfile.TemporaryDirectory() as folder:
    table, config = Path(folder, "history.csv"), Path(folder, "otava.yaml")
    with table.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["time", "commit", *names])
        for gate, figures in complete:
            time = datetime.strptime(gate["run_id"][:15], "%Y%m%d-%H%M%S").replace(tzinfo=UTC)
            writer.writerow([time.isoformat(), gate["commit"] or "", *(figures[name] for name in names)])
    metrics = {name: {"column": name, "direction": 1 if name.endswith(GROWS) else -1} for name in names}
    test = {"type": "csv", "file": str(table), "attributes": ["commit"], "metrics": metrics}
    config.write_text(json.dumps({"tests": {"gate": test}}))  # JSON is YAML
    words = ["otava", "analyze", "gate", "--config-file", str(config), "--since", "2000-01-01"]
    try:
        sys.exit(subprocess.run(words, check=False).returncode)
    except FileNotFoundError:
        sys.exit("change_points.py: otava is missing: uv tool install apache-otava")
