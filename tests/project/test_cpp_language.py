"""The field's words in C++: functions begin with a verb, a type name stands once, no name or comment is a riddle."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
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

SHARED = ("bench", "canary", "clients/_shared", "launch", "lib", "link", "loadgen", "servers/_shared")
"""A contestant's folder is a program of its own, with names of its own."""
MARK = re.compile(r"[{};]|\b(?P<access>public|protected|private)\s*:(?!:)")
"""What ends a declaration, or begins a part of a class."""
NAMESPACE = re.compile(r"(?:inline\s+)?namespace\b")
TYPE = re.compile(
    r"(?:template\s*<.*>\s*)?(?P<key>struct|class|union|enum(?:\s+(?:class|struct))?)\s+(?:alignas\s*\([^()]*\)\s*)?"
    r"(?:\w+::)*(?P<name>\w+)(?:\s+final)?\s*(?::(?!:).*)?",
    re.DOTALL,
)
"""What stands before the body of a type. A specialization of a template is none: it has its name already."""
ALIAS = re.compile(r"(?:template\s*<.*>\s*)?using\s+(?P<name>\w+)\s*=\s*(?P<target>.*)", re.DOTALL)


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


def find_types(text: str) -> Iterator[tuple[int, str, str]]:
    """Yield the types that namespaces and classes define: the line, the name, and `private` or an alias's target."""
    code, begin = strip(text), 0
    scopes = ["namespace"]  # the access where it is a class
    for mark in MARK.finditer(code):
        declaration, begin = code[begin : mark.start()].strip(), mark.end()
        line = code.count("\n", 0, mark.start()) + 1
        access = "private" if "private" in scopes else ""
        if mark["access"]:
            scopes[-1] = mark["access"]
        elif mark[0] == "}":
            scopes.pop()
        elif mark[0] == ";":
            if "function" not in scopes and (alias := ALIAS.fullmatch(declaration)):
                yield line, alias["name"], access or alias["target"]
        elif "function" not in scopes and (defined := TYPE.fullmatch(declaration)):
            yield line, defined["name"], access
            scopes.append("private" if defined["key"] == "class" else "public")
        else:
            scopes.append("namespace" if NAMESPACE.match(declaration) else "function")


def find_repeated_types(files: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    """Return the names that stand for more than one type in these files, each with its places."""
    places: dict[str, dict[str, list[str]]] = {}
    for path, text in files:
        for line, name, meaning in find_types(text):
            if not meaning.endswith(f"::{name}"):  # `using Clock = Poller::Clock` is no other Clock
                place = f"{path}:{line}"
                places.setdefault(name, {}).setdefault(meaning or place, []).append(place)
    repeated = {name: meanings.values() for name, meanings in places.items() if len(meanings) > 1}
    return {name: [place for found in meanings for place in found] for name, meanings in repeated.items()}


SHARES = {
    "lib": 0.75, "loadgen": 0.75, "servers": 0.75, "clients": 0.75, "bench": 0.9, "link": 0.95, "canary": 1, "launch": 1
}  # fmt: skip
"""The least share of a folder's functions that begin with a verb."""


@pytest.mark.parametrize("folder", SHARES)
def test_functions_begin_with_a_verb(folder: str) -> None:
    files = {path: text for path, text in sources().items() if path.parts[0] == folder}
    names = {(path.with_suffix(""), name) for path, text in files.items() for name in find_functions(text)}
    acting = [name for _, name in names if begins_with_a_verb(name)]
    asking = [name for _, name in names if name.strip("_").partition("_")[0] in PREDICATES]
    assert len(acting) / (len(names) - len(asking)) >= SHARES[folder]


def test_a_type_name_stands_once_in_the_shared_code() -> None:
    """A class, an enumeration or an alias counts where a namespace or a class defines it; in a function it does not.

    Private types of several classes may have one name, for only their classes can use it, but then no other type has
    it. Aliases may have one name where they have one target, as each `Clock` is a `std::chrono::steady_clock`.
    """
    shared = [
        (str(path), text) for path, text in sources().items() if any(path.is_relative_to(folder) for folder in SHARED)
    ]
    assert find_repeated_types(shared) == {}


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


def test_a_type_name_that_stands_twice_would_be_seen() -> None:
    first = "namespace a {\nstruct Plan {\n  int size{};\n};\nusing Clock = std::chrono::steady_clock;\n"
    first += "class Line final : public Plan {\n  struct Entry {};\n  using Frame = int;\n public:\n"
    first += "  class Fate;\n};\n}\n"
    second = "template <typename T>\nclass Table {\n  struct Entry {};\n public:\n  using Clock = Line::Clock;\n"
    second += "  enum class Plan : int { none };\n};\nstruct alignas(64) Frame {};\nenum Fate {};\n"
    second += "using Clock = std::chrono::steady_clock;\nvoid run() {\n  struct Line {};\n}\n"
    second += "template <>\nstruct std::hash<Frame> {};\nclass Table;\n"
    assert find_repeated_types([("a.hpp", first), ("b.hpp", second)]) == {
        "Plan": ["a.hpp:2", "b.hpp:6"],
        "Frame": ["a.hpp:8", "b.hpp:8"],
    }
    assert find_repeated_types([("a.hpp", first)]) == {}
