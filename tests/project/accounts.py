"""What is to be said of each verdict on the five studies, from their claims: a chapter of docs/studies.md.

    .venv/bin/python -m tests.project.accounts

writes it there."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from netdyno.kit.paths import ROOT
from netdyno.model.claim import Claim
from tests.support.studies import load_study

PAGE = ROOT / "docs" / "studies.md"
BEGINS = "## The account of each verdict\n"
INTRODUCTION = """
For each claim: what its author would say, what would overturn the verdict, what the source's own program does, what
differs here, and what was done. A claim without a line on its program has that of its study's first.
"""
PROGRAM = "its program"
WIDTH = 120


def render() -> str:
    """Return the chapter."""
    return f"{BEGINS}{INTRODUCTION}{''.join(list_lines())}"


def list_lines() -> Iterator[str]:
    """Yield the lines; a sentence that claims of a study share stands at the first of them. Where a source shows no
    program, all its claims share that sentence: no line repeats it."""
    for study in load_study("sources").parts:
        first: dict[tuple[str, str], str] = {}
        claims = load_study(study).claims
        for claim in claims:
            yield f"\n**{claim.id}** {claim.text}\n\n"
            for name, sentence in list_sentences(claim):
                place = first.setdefault((name, sentence), claim.id)
                if name == PROGRAM and claims[0].id == place != claim.id:
                    continue
                words = sentence if place == claim.id else f"as {place}."
                yield f"{fill(f'* {name}: {words}')}\n"


def list_sentences(claim: Claim) -> Iterator[tuple[str, str]]:
    """Yield the sentences on a verdict, each with its name."""
    assert claim.account is not None
    yield "its author", claim.account.objection
    yield "overturned by", claim.account.overturn
    yield PROGRAM, claim.account.program
    if claim.differs:
        yield "here", f"{claim.differs[0].upper()}{claim.differs[1:]}."
    if claim.script is not None:
        yield f"by its {claim.script.by}", claim.script.because
    yield "done", claim.account.answer


def fill(text: str) -> str:
    return textwrap.fill(text, WIDTH, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)


def write() -> None:
    before, _, _ = PAGE.read_text().partition(BEGINS)
    PAGE.write_text(f"{before.rstrip()}\n\n{render()}")


if __name__ == "__main__":
    write()
