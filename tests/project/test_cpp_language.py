"""The field's words in C++: most functions begin with a verb, and no name or comment has a word that says nothing."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from netdyno.kit.paths import ROOT
from netdyno.verbs.checks import list_cpp_sources
from tests.project.test_language import PREDICATES, WORDS, begins_with_a_verb

pytestmark = pytest.mark.quick

NOT_CODE = re.compile(
    r'//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|(?<!\w)\'(?:\\.|[^\'\\\n])*\'|^[ \t]*#(?:\\\n|[^\n])*',
    re.DOTALL | re.MULTILINE,
)
"""Comments, texts and directives."""
FUNCTION = re.compile(
    r"(?<![\w.>])(?P<type>(?:[A-Za-z_][\w:]*(?:<[^;{}()]*>)?[\s&*]+)+)(?:\w+(?:<\w+>)?::)*(?P<name>[a-z_]\w*)"
    r"\((?P<parameters>[^;{}]*?)\)\s*(?P<after>(?:const|noexcept|override|final|\s)*)"
    r"(?:->\s*[\w:<>]+\s*)?(?:=\s*(?:0|default|delete)\s*)?(?=[;{])"
)
"""A declaration or definition with a type before its name: no constructor, no call."""
NO_TYPE = re.compile(r"\b(return|else|new|delete|throw|co_return|co_await|co_yield|using|goto|case|operator|typedef)\b")
CONVERSION = re.compile(r"^(on|to)_|_(of|json|text|words)$")
"""An event, named for what happens, or a pure conversion, named for what it makes."""
RETIRED = frozenset(
    "anew arrears farewell nobody owed owes said somebody told wanted whoever whom".split()  # noqa: SIM905
)
"""Words that no name needs (`pending`, `backlog`, `needed`, ... say it)."""


@cache
def sources() -> dict[Path, str]:
    """The C++ of the product."""
    paths = map(Path, list_cpp_sources(ROOT))
    return {path: (ROOT / path).read_text(encoding="utf-8") for path in paths if path.parts[0] != "tests"}


def strip(text: str) -> str:
    """Return the code alone, its lines where they were."""
    return NOT_CODE.sub(lambda found: "\n" * found.group(0).count("\n"), text)


def find_functions(text: str) -> Iterator[str]:
    """Yield the names of those that do something: no properties, events, conversions, nor a library's own names."""
    for found in FUNCTION.finditer(strip(text)):
        name = found["name"]
        is_property = "const" in found["after"] and not found["parameters"].strip()
        is_foreign = name != name.lower() or name == "main"
        if not (NO_TYPE.search(found["type"]) or is_property or is_foreign or CONVERSION.search(name)):
            yield name


def find_words(text: str, words: frozenset[str]) -> Iterator[tuple[int, str]]:
    """Yield the names in which one of these words stands, with their lines."""
    for number, line in enumerate(strip(text).splitlines(), 1):
        for name in re.findall(r"[A-Za-z_]\w*", line):
            if words.intersection(name.strip("_").lower().split("_")):
                yield number, name


@pytest.mark.parametrize("folder", ["lib", "loadgen", "servers", "clients"])
def test_three_of_four_functions_begin_with_a_verb(folder: str) -> None:
    files = {path: text for path, text in sources().items() if path.parts[0] == folder}
    names = {(path.with_suffix(""), name) for path, text in files.items() for name in find_functions(text)}
    acting = [name for _, name in names if begins_with_a_verb(name)]
    asking = [name for _, name in names if name.strip("_").partition("_")[0] in PREDICATES]
    assert len(acting) / (len(names) - len(asking)) >= 0.75


def test_no_name_has_a_retired_word() -> None:
    found = [f"{path}:{line} {name}" for path, text in sources().items() for line, name in find_words(text, RETIRED)]
    assert found == []


def test_comments_are_in_plain_words() -> None:
    riddles = [
        f"{path}: {word}"
        for path, text in sources().items()
        for comment in NOT_CODE.finditer(text)
        if comment.group(0).startswith("/")
        for word in WORDS.findall(comment.group(0))
    ]
    assert riddles == []


def test_a_riddle_would_be_seen() -> None:
    text = 'class C {\n  void C::take_in(int one);\n  int size() const { return owed_; }\n};\nsay("told");\n'
    text += "bool is_open(int fd);\nvoid on_end() {}\nstd::string error_text(int number) {\n  return owes(1);\n}\n"
    assert list(find_functions(text)) == ["take_in", "is_open"]
    assert list(find_words(text, RETIRED)) == [(3, "owed_"), (9, "owes")]
