"""The scripts of bench/, to be tested like modules."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

from netdyno.kit.paths import ROOT

BENCH = ROOT / "bench"


def load(name: str) -> ModuleType:
    """bench/<name>.py as a module; nothing of it is run but what stands at its top."""
    if str(BENCH) not in sys.path:
        sys.path.append(str(BENCH))  # what the scripts share, they import by its bare name
    spec = importlib.util.spec_from_file_location(name, BENCH / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # its dataclasses look themselves up there
    spec.loader.exec_module(module)
    return module


def without_programs(name: str, folder: Path) -> str:
    """What bench/<name>.py prints where an empty folder is all of PATH. Raises CalledProcessError if it does not end
    well: a skip is a result."""
    return subprocess.run(
        [sys.executable, str(BENCH / f"{name}.py")],
        env={**os.environ, "PATH": str(folder)},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
