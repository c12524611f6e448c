"""The order in which the addresses of a host are tried."""

from __future__ import annotations

import socket

import pytest

from netdyno.kit.addresses import SocketAddress, resolve, take_families_in_turn

SIX, FOUR = socket.AF_INET6, socket.AF_INET


def test_families_take_turns_and_begin_with_the_first() -> None:
    addresses = [
        SocketAddress(family, (host, 1))
        for family, host in [(SIX, "a"), (SIX, "b"), (SIX, "c"), (FOUR, "d"), (FOUR, "e")]
    ]
    assert [address.host for address in take_families_in_turn(addresses)] == ["a", "d", "b", "e", "c"]
    assert [address.host for address in take_families_in_turn(addresses[::-1])] == ["e", "c", "d", "b", "a"]
    assert take_families_in_turn(addresses[:1]) == addresses[:1]


def test_a_number_is_its_own_address() -> None:
    assert [(address.family, address.host) for address in resolve("127.0.0.1", 1)] == [(FOUR, "127.0.0.1")]


def test_what_can_be_no_name_is_an_error() -> None:
    with pytest.raises((OSError, UnicodeError)):
        resolve("a..b", 1)
