"""A ranking across languages, in a sentence. Pure functions."""

from __future__ import annotations

from collections.abc import Sequence

from netdyno.analysis.found.ground import Ground
from netdyno.analysis.found.ranking import Within
from netdyno.kit import quantities
from netdyno.present.prose import ground


def describe_choices(languages: Sequence[Within], ground_of_scenario: Ground) -> str:
    """Say which to take within each language; empty where there is nothing to say."""
    if not languages:
        return ""
    places = [
        f" on {ground.describe_usable_cores(group.cores)}" if len(ground_of_scenario.together) > 1 else ""
        for group in ground_of_scenario.together
    ] or [""]
    unbeaten = "; ".join(
        f"in {language.language}{places[language.group]} {quantities.listed(language.unbeaten)} (of {language.total})"
        for language in languages
    )
    return f"Across languages, runtimes are compared as well as models. Unbeaten within one language: {unbeaten}."
