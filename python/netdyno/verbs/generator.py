"""`netdyno-load` of an installed wheel: the generator itself, which lies within the package."""

from __future__ import annotations

import os
import sys
from typing import NoReturn

from netdyno.kit.paths import build_dir, generator_path


def main() -> NoReturn:
    """Replace this process by the generator, with the same arguments."""
    generator = generator_path(build_dir())
    os.execv(generator, [str(generator), *sys.argv[1:]])
