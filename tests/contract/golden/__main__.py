"""Write protocol/golden.json: `python -m tests.contract.golden`."""

from tests.contract.golden.vectors import GOLDEN, document

GOLDEN.write_text(document(), encoding="utf-8")
