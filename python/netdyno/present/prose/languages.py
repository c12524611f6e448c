"""A ranking across languages, in a sentence. Pure functions."""

from __future__ import annotations

from collections.abc import Sequence

from netdyno.analysis.findings import Within
from netdyno.base import quantities


def sentence(found: Sequence[Within]) -> str:
    """What to take within each language; empty where there is nothing to say."""
    if not found:
        return ""
    told = "; ".join(f"in {one.language} {quantities.listed(one.unbeaten)} (of {one.of})" for one in found)
    return f"Across languages a runtime is compared as well as a model. Within one, nobody beats: {told}."
