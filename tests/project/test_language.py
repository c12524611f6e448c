"""The field's words: functions begin with a verb, and no name or sentence of the code has a word that says nothing."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

from netdyno.kit.paths import ROOT

PRODUCT = ("python", "bench", "clients", "servers")
CODE = (*PRODUCT, "tests")
IN_PACKAGES = ("python", "bench", "tests")
"""A contestant's folder is a program of its own, with names of its own."""
ALIAS = re.compile(r"[A-Z]+[a-z]\w*")
VERBS = frozenset((Path(__file__).parent / "verbs.txt").read_text().split())
PREDICATES = frozenset({"are", "can", "does", "has", "holds", "is", "knows", "may", "must", "needs", "takes", "was"})
"""A function that begins so is the answer yes or no."""
NAMES = frozenset({"anew", "each", "nobody", "one", "said", "some", "somebody", "told", "wanted", "whom"})
"""Names that say nothing of what they hold, alone or after an underscore."""
GLOSSARY = re.compile(
    r"(^|_)(arrears|asked|besides?|farewell|owed|said|slo|struck|told|whose|wishes)(_|$)"
    r"|made_again|not_believed|set_aside|take_leave|lookout|look_(again|at|for|now|out)(_|$)|(assign|choose)_looks?(_|$)"
    r"|^_?(among|of)$|is_witness|(divide|halve)_level|share_along",
    re.IGNORECASE,
)
"""Words that have left the names of the product, each for one of the field: backlog, requested or given, rivals or
neighbour, closing, pending, printed, objective, invalid, proven, sides, candidates; and retried, excluded, polled,
styled (a look is an interim analysis); eligible, total, a timer, significance."""
WORDS = re.compile(r"\b(anew|nobody|somebody|told|whoever|whom)\b", re.IGNORECASE)
"""Words that no comment or docstring needs."""
IN_TESTS = frozenset({"anew", "asked", "nobody", "said", "somebody", "told", "wanted", "who", "whoever", "whom"})
"""Words that no test's name needs: it names the program, and what is reported, stated or requested."""


@cache
def parse(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def modules(folders: tuple[str, ...] = PRODUCT) -> dict[Path, ast.Module]:
    return {path: parse(path) for folder in folders for path in (ROOT / folder).rglob("*.py")}


def functions(module: ast.Module) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """Yield those that do something: no properties, no methods that Python calls by itself."""
    for node in ast.walk(module):
        if (
            isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
            and not node.name.startswith("__")
            and not any("property" in ast.unparse(decorator) for decorator in node.decorator_list)
        ):
            yield node


def begins_with_a_verb(name: str) -> bool:
    return name.strip("_").partition("_")[0] in VERBS


def bound_names(module: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield every name that is given to a variable, a parameter, an attribute, a function or a class, with its line."""
    for node in ast.walk(module):
        match node:
            case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()) | ast.arg(arg=name):
                yield node.lineno, name
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield node.lineno, name


def type_names(module: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield every class, and every alias of a type: a name in capitals and small letters that a module gives."""
    for node in ast.walk(module):
        if isinstance(node, ast.ClassDef):
            yield node.lineno, node.name
    for statement in module.body:
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
                if ALIAS.fullmatch(name):
                    yield statement.lineno, name


def repeated_types(files: Iterable[tuple[str, ast.Module]]) -> dict[str, list[str]]:
    """Return the names of types that stand more than once in these files, each with its places."""
    places: dict[str, list[str]] = {}
    for path, module in files:
        for line, name in type_names(module):
            places.setdefault(name, []).append(f"{path}:{line}")
    return {name: found for name, found in places.items() if len(found) > 1}


def prose(text: str, module: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield comments and docstrings, those of fields as well, with their lines."""
    for token in tokenize.generate_tokens(io.StringIO(text).readline) if "#" in text else ():
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string
    for node in ast.walk(module):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            yield node.lineno, node.value.value


def test_three_of_four_functions_begin_with_a_verb() -> None:
    names = [function.name for module in modules().values() for function in functions(module)]
    asking = [name for name in names if name.strip("_").partition("_")[0] in PREDICATES]
    acting = [name for name in names if begins_with_a_verb(name)]
    assert len(acting) / (len(names) - len(asking)) >= 0.75


def test_every_name_says_what_it_holds() -> None:
    silent = [
        f"{path.relative_to(ROOT)}:{line} {name}"
        for path, module in modules(CODE).items()
        for line, name in bound_names(module)
        if name.strip("_").lower() in NAMES
    ]
    assert silent == []


def test_no_name_of_the_product_has_a_word_that_was_replaced() -> None:
    old = [
        f"{path.relative_to(ROOT)}:{line} {name}"
        for path, module in modules().items()
        for line, name in bound_names(module)
        if GLOSSARY.search(name)
    ]
    assert old == []


def test_a_type_name_stands_once_in_the_project() -> None:
    files = [(str(path.relative_to(ROOT)), module) for path, module in modules(IN_PACKAGES).items()]
    assert repeated_types(files) == {}


def test_the_name_of_every_test_is_in_plain_words() -> None:
    riddles = [
        f"{path.relative_to(ROOT)}:{function.lineno} {function.name}"
        for path, module in modules(("tests",)).items()
        for function in functions(module)
        if function.name.startswith("test_") and IN_TESTS.intersection(function.name.split("_"))
    ]
    assert riddles == []


def test_comments_and_docstrings_are_in_plain_words() -> None:
    riddles = [
        f"{path.relative_to(ROOT)}:{line} {word}"
        for path, module in modules(CODE).items()
        if WORDS.search(source := path.read_text(encoding="utf-8"))
        for line, text in prose(source, module)
        for word in WORDS.findall(text)
    ]
    assert riddles == []


def test_a_silent_name_and_a_riddle_would_be_seen() -> None:
    text = "class C:\n    told: int\n    'Of whom.'\ndef f(one):\n    for each in one:  # Nobody\n        f._said = 1\n"
    module = ast.parse(text)
    assert {"told", "one", "each", "_said"} < {name for _, name in bound_names(module)}
    assert [word for _, found in prose(text, module) for word in WORDS.findall(found)] == ["Nobody", "whom"]


def test_a_replaced_word_would_be_seen() -> None:
    seen = [
        "NOT_BELIEVED",
        "take_leave",
        "_farewell",
        "whose",
        "owed_bytes",
        "read_slo",
        "struck_out",
        "made_again",
        "look_at_logs",
        "among",
        "_of",
        "is_witnessed",
        "SHARE_ALONG",
    ]
    assert [
        name
        for name in (*seen, "allowed", "slow", "slot_s", "INVALID_LOAD", "GATE_LOOKS", "rank_among", "of_axes")
        if GLOSSARY.search(name)
    ] == seen


def test_a_repeated_type_name_would_be_seen() -> None:
    first = ast.parse("class Task: ...\nclass Load: ...\nRow = tuple[int, str]\nROW = 1")
    second = ast.parse("def f():\n    class Task: ...\nRow: TypeAlias = int\nROW = 2")
    assert repeated_types([("a.py", first), ("b.py", second)]) == {
        "Task": ["a.py:1", "b.py:2"],
        "Row": ["a.py:3", "b.py:3"],
    }
    assert repeated_types([("a.py", first)]) == {}
