"""Writes protocol/golden.json anew: `python -m tests.golden`."""

from tests.golden.vectors import GOLDEN, document

GOLDEN.write_text(document(), encoding="utf-8")
