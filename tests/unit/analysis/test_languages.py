"""The best within a language, and when it is named."""

from __future__ import annotations

from msgspec.structs import replace

from netdyno.analysis.analysis import analyse
from netdyno.analysis.found.ranking import Within
from netdyno.analysis.found.run import ScenarioFindings
from netdyno.model.contestant import About
from netdyno.present.prose.languages import describe_choices
from tests.support.builders.analysed import analysed
from tests.support.builders.made_run import made_run


def findings(*languages: str, blocks: int = 6) -> ScenarioFindings:
    """Of servers in these languages, the first is that of the best."""
    run = made_run(blocks)
    order = [standing.contestant for standing in analysed(run).scenarios[0].standings]
    about = tuple(
        About(kind="server", name=name, language=language) for name, language in zip(order, languages, strict=False)
    )
    return analyse(replace(run, about=about)).scenarios[0]


def test_within_each_language_those_that_none_of_it_beats_are_named() -> None:
    result = findings("Rust", "C++", "C++")
    second, third = (standing.contestant for standing in result.standings[1:3])
    (family,) = [comparison for comparison in result.comparisons if {comparison.a, comparison.b} == {second, third}]
    unbeaten = (second,) if family.different else (second, third)
    assert result.within == (Within("C++", unbeaten, 2),)
    assert describe_choices(result.within, result.ground) == (
        "Across languages, runtimes are compared as well as models. Unbeaten within one language: in C++ "
        f"{' and '.join(unbeaten)} (of 2)."
    )


def test_in_one_language_there_is_nothing_to_say() -> None:
    for languages in (("C++", "C++", "C++"), ("", "", ""), ("Rust", "", "")):
        result = findings(*languages)
        assert result.within == ()
        assert describe_choices(result.within, result.ground) == ""


def test_of_too_few_blocks_there_is_nothing_to_say_either() -> None:
    assert findings("Rust", "C++", "C++", blocks=3).within == ()
