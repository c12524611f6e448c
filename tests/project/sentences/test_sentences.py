"""No sentence that a person can be shown has a word that has to be read twice."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.project.sentences import collect

pytestmark = pytest.mark.quick

BANNED = re.compile(
    r"\b(nobody|somebody|everybody|anybody|whom|whoever|anew|told|dearer|made again|set aside|struck[ -]out"
    r"|goe?s? along|not believed|as asked|sent again|asked less|would tell|(can|cannot) be had"
    r"|disturbed alike|known as precisely|own part in it|said nothing|server after (?:is|has|had)|would decide it"
    r"|at size|other virtual machines|gives? to others|servers? and load|load and server|the load (?:itself|alone)"
    r"|(?:the|one|each|a) question|question in common)\b",
    re.IGNORECASE,
)
"""What a stranger stumbles over; the field says retried, excluded, invalid, proven different, correlates, requested."""


def test_no_sentence_has_a_word_that_has_to_be_read_twice() -> None:
    words = {line: collect.without_holes(line) for line in collect.page().splitlines()}
    assert [line for line, text in words.items() if BANNED.search(text)] == []


def test_a_banned_word_would_be_seen() -> None:
    words = collect.without_holes("nothing is {told} of {names}, and {who|nobody} knows")
    assert BANNED.findall(words) == [("nobody", "")]


@pytest.mark.parametrize(
    ("read", "source", "texts"),
    [
        (
            collect.python_texts,
            '"""Of a module."""\nraise UserError(f"no {name} of " + kind)\n',
            ["no {name} of {kind}"],
        ),
        (collect.python_texts, "x = f\"{count} {'is' if one else 'are'} here\"\n", ["{count} {is|are} here"]),
        (
            collect.python_texts,
            'def f(x: Literal["two words"], y: Annotated[str, Option(help="Of an option.")]) -> None:\n    """No."""\n',
            ["Of an option."],
        ),
        (collect.python_texts, '@app.command()\ndef f() -> None:\n    """Of a command."""\n', ["Of a command."]),
        (
            collect.code_texts,
            'fail("cannot open " + path + ": "\n     "no file");  // not "this one"\nuse("x", \'"\', R"(a b)");',
            ["", "cannot open {path}: no file", "x", "a b"],
        ),
        (
            collect.page_texts,
            '<p title="Of a title">A <b>bold</b> word{% if x %}, {{ x.name }}{% endif %}</p><td>cell</td>',
            ["Of a title", "A bold word|, {x.name}", "cell"],
        ),
        (
            collect.script_texts,
            '# say "no"\nsay "set-up of $x" \\\n    "goes on"\nif true; then fail "one" "two"; fi\n',
            ["set-up of $x", "goes on", "one", "two"],
        ),
    ],
)
def test_a_sentence_is_collected(
    read: Callable[[Path], Iterator[str]], source: str, texts: list[str], tmp_path: Path
) -> None:
    path = tmp_path / "source.cpp"
    path.write_text(source, encoding="utf-8")
    assert [text for text in read(path) if text or texts[0] == ""] == texts
