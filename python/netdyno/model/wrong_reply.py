"""The first requests to a server that has no right reply to them, and the error that tells of it."""

from __future__ import annotations

import msgspec

from netdyno.kit.errors import UserError
from netdyno.model.load_result import LoadResult
from netdyno.model.options import Settings


class WrongReply(msgspec.Struct, frozen=True):
    """The first requests to a server by its name, none of which had a right reply within `wait_s`."""

    name: str
    settings: Settings
    load: LoadResult
    wait_s: float


class WrongReplyError(UserError):
    """A server has no right reply to the first requests; present/prose/wrong_reply.py words what came."""

    def __init__(self, wrong: WrongReply) -> None:
        super().__init__(f"{wrong.name} has no right reply to the first requests")
        self.wrong = wrong
