"""Whatever a chatter sends, the terminal gets one line of visible characters."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netdyno.protocol import wire
from netdyno.verbs.chat.message_text import LONGEST_SHOWN, LoadTally, format_message


@given(st.one_of(st.binary(max_size=40), st.text(max_size=40).map(lambda text: text.encode("utf-8", "replace"))))
def test_nothing_but_visible_characters_is_shown(body: bytes) -> None:
    assert format_message(body).isprintable()


@pytest.mark.parametrize(
    ("body", "line"),
    [
        (b"ada: hello", "ada: hello"),
        ("ada: grüß dich ✓ 漢字".encode(), "ada: grüß dich ✓ 漢字"),
        (b"\x1b[2J\x1b]0;owned\x07", r"\x1b[2J\x1b]0;owned\x07"),
        ("\u009b31m".encode(), r"\x9b31m"),
        (b"x\nbob: I owe you", r"x\nbob: I owe you"),
        (b"x\rbob: hi", r"x\rbob: hi"),
        ("\u202eevil\u2028".encode(), r"\u202eevil\u2028"),
        (b"\x00\xff\xfe", r"\x00\xff\xfe"),
        (b"a\tb\x7f", r"a\tb\x7f"),
    ],
)
def test_what_cannot_be_seen_becomes_an_escape(body: bytes, line: str) -> None:
    assert format_message(body) == line


def test_a_long_message_is_shown_by_its_beginning() -> None:
    line = format_message(b"a" * 100_000)
    assert line == "a" * LONGEST_SHOWN + "… [100000 bytes in all]"
    assert format_message(b"a" * LONGEST_SHOWN) == "a" * LONGEST_SHOWN


def test_messages_of_the_generator_are_counted() -> None:
    tally = LoadTally()
    assert tally.take_line() is None
    assert all(tally.takes(wire.stamp(client, number, 31)) for client in (1, 2) for number in range(5))
    assert tally.take_line() == "[load generator: messages 10, bytes 310, clients 2]"
    assert tally.take_line() is None


@pytest.mark.parametrize("body", [b"ada: hello", b"", b"\xff" * 40, wire.stamp(1, 2, 40)[:-1] + b"!"])
def test_what_only_looks_like_one_of_the_generator_is_shown(body: bytes) -> None:
    tally = LoadTally()
    assert not tally.takes(body)
    assert tally.take_line() is None
