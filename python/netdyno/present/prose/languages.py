"""A ranking across languages, in a sentence. Pure functions."""

from __future__ import annotations

from collections.abc import Sequence

from netdyno.analysis.findings import Within
from netdyno.analysis.ground import Ground
from netdyno.base import quantities
from netdyno.present.prose import ground


def sentence(found: Sequence[Within], of: Ground) -> str:
    """What to take within each language; empty where there is nothing to say."""
    if not found:
        return ""
    on = [f" on {ground.usable_words(group.cores)}" if len(of.together) > 1 else "" for group in of.together] or [""]
    told = "; ".join(
        f"in {one.language}{on[one.ground]} {quantities.listed(one.unbeaten)} (of {one.of})" for one in found
    )
    return f"Across languages, runtimes are compared as well as models. Unbeaten within one language: {told}."
