"""The pieces of a client's command line: a parser whose errors are one line, and readers of values for it."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from typing import NoReturn, TypeVar

from netdyno.kit.errors import UserError
from netdyno.kit.escape import harmless

T = TypeVar("T")


class Parser(argparse.ArgumentParser):
    """A parser that ends the program with exit 2 on an invalid command line."""

    def error(self, message: str) -> NoReturn:
        """Print one line that does nothing to a terminal, whatever was in an argument."""
        print(f"{self.prog}: {harmless(message)} (--help lists the options)", file=sys.stderr)
        sys.exit(2)


def make_reader(read: Callable[[str], T]) -> Callable[[str], T]:
    """Return a reader for argparse, which shows the text of ArgumentTypeError and of no other exception."""

    def read_checked(text: str) -> T:
        try:
            return read(text)
        except (ValueError, UserError) as error:
            raise argparse.ArgumentTypeError(str(error)) from error

    return read_checked


def accept_one_of(*words: str) -> Callable[[str], str]:
    """Return a reader that accepts these words only."""

    def read(text: str) -> str:
        if text not in words:
            raise ValueError(f"{text!r} is not one of {', '.join(words)}")
        return text

    return read
