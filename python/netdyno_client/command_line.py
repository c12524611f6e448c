"""The pieces of a client's command line: a parser whose errors are one line, and readers of values for it."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from typing import NoReturn, TypeVar

from netdyno.base.errors import UserError
from netdyno.base.escape import harmless

T = TypeVar("T")


class Parser(argparse.ArgumentParser):
    """Ends the program with exit 2 on what cannot be meant."""

    def error(self, message: str) -> NoReturn:
        """One line that does nothing to a terminal, whatever was in an argument."""
        print(f"{self.prog}: {harmless(message)} (--help lists the options)", file=sys.stderr)
        sys.exit(2)


def reader(read: Callable[[str], T]) -> Callable[[str], T]:
    """Return a reader for argparse, which shows the text of ArgumentTypeError and of no other exception."""

    def checked(text: str) -> T:
        try:
            return read(text)
        except (ValueError, UserError) as error:
            raise argparse.ArgumentTypeError(str(error)) from error

    return checked


def one_of(*words: str) -> Callable[[str], str]:
    """Return a reader that takes these words only."""

    def read(text: str) -> str:
        if text not in words:
            raise ValueError(f"{text!r} is not one of {', '.join(words)}")
        return text

    return read
