"""The requests of a scenario to the user's own servers, under the names that netdyno-load has (docs/load.md)."""

from __future__ import annotations

import re
from typing import Annotated, Literal, get_args

import msgspec

from netdyno.model.base import Frozen, Whole
from netdyno.model.values import Option, ValueKind, declared, list_flags, text_kind, whole, word

Verify = Literal["status", "length", "hash", "echo"]
AT_FILE = " by "
"""What stands between an endpoint and the file that is connected to instead (loadgen/plan/plan.cpp, address_of)."""
BYTES = "bytes"
"""The workload of a scenario that sends the user's own bytes (`send`)."""
FILE = "@"
"""What stands before the name of a file whose content is meant (question/request_files.py)."""
MOST_TEXT = 64 << 10
"""The most bytes of all requests of a scenario: they are words of the generator's command line."""

_ESCAPES = {"\r": r"\r", "\n": r"\n", "\t": r"\t", "\0": r"\0", "\\": r"\\"}


def escape(content: bytes) -> str:
    r"""Write bytes on one line: \r \n \t \0 \\ and \xHH (loadgen/plan/foreign.cpp, unescape). Pure."""
    return "".join(
        _ESCAPES.get(char) or (char if " " <= char < "\x7f" and char != "@" else f"\\x{ord(char):02x}")
        for char in content.decode("latin-1")
    )


def _list_texts(value: object) -> list[str]:
    listed = value if isinstance(value, list) else [value]
    texts = [text for text in listed if isinstance(text, str) and text]
    if not texts or len(texts) < len(listed):
        raise ValueError(f"{value!r} has an empty text, or something else in place of one")
    return texts


def _read_paths(value: object) -> tuple[str, ...]:
    paths = tuple(_list_texts(value))
    for path in paths:
        if path[0] not in "/@" or re.search(r"[\x00-\x1f\x7f#]", path):
            raise ValueError(f"{path!r} is not a path: write /items, or /items=3 for three times as often")
    return paths


def _read_headers(value: object) -> tuple[str, ...]:
    headers = tuple(_list_texts(value))
    for header in headers:
        name, colon, _ = header.partition(":")
        if not colon or not name or re.search(r"\s", name) or re.search(r"[\r\n\0]", header):
            raise ValueError(f"{header!r} is not a header: write 'name: value'")
        if name.lower() in ("content-length", "transfer-encoding"):
            raise ValueError(f"{header!r}: the length of the body follows from the data; leave it out")
    return headers


def _read_switch(value: object) -> bool:
    if not isinstance(value, bool):
        raise ValueError(f"{value!r} is neither true nor false")
    return value


PATHS = ValueKind(_read_paths, typed=list, metavar="PATH[=WEIGHT]|@FILE")
HEADERS = ValueKind(_read_headers, typed=list, metavar="'NAME: VALUE'")
CONTENT = text_kind("a text", metavar="TEXT|@FILE")
RAW = text_kind("a text of bytes", "(?s:.+)", "BYTES|@FILE")
METHOD = text_kind("a method, such as GET or POST", "[A-Z]+")
STATUS = text_kind("a status, such as 200 or 2xx", r"[1-5]xx|[1-5]\d\d", digits=True)
LENGTH = text_kind(
    "a length, such as u32be, u16le@2 or u32be@8+12", r"u(8|(16|24|32|40|48|56|64)(be|le))(@\d+)?([+-]\d+)?"
)
SWITCH = ValueKind(_read_switch, typed=bool)


class OwnRequests(Frozen, kw_only=True):
    """What the user's own servers are sent, and which replies are right. With a `path` they get requests of http, with
    `send` these bytes, and with neither the messages of the workload, whose replies repeat what was sent.
    `verify`: None until the first requests have shown whether equal URLs have replies of equal length
    (measure/trial/first_requests.py)."""

    path: Annotated[
        tuple[str, ...],
        Option(PATHS, "http: what is requested; may be repeated, and is then taken in turn (default /).", "requests"),
    ] = ()
    method: Annotated[
        str | None, Option(METHOD, "http: the method (default GET, or POST with --data).", "requests", short="X")
    ] = None
    header: Annotated[
        tuple[str, ...], Option(HEADERS, "http: a header of each request; may be repeated.", "requests", short="H")
    ] = ()
    data: Annotated[str | None, Option(CONTENT, "http: the body of each request.", "requests", short="d")] = None
    expect_status: Annotated[
        str | None, Option(STATUS, "http: the status of a right reply (default 2xx).", "requests")
    ] = None
    verify: Annotated[
        Verify | None,
        Option(
            word(*get_args(Verify)),
            "The verified part of a reply: its status; its length or a hash too, against the first of its URL; or that "
            "it echoes the URL (default: length, if that is constant).",
            "requests",
        ),
    ] = None
    send: Annotated[
        str | None, Option(RAW, r"Instead of http: the bytes of each message, such as 'PING\r\n'.", "requests")
    ] = None
    expect: Annotated[str | None, Option(RAW, "With --send: what a right reply begins with.", "requests")] = None
    reply_until: Annotated[
        str | None, Option(RAW, r"With --send: what a reply ends with (default \n).", "requests")
    ] = None
    reply_size: Annotated[
        Whole | None, Option(whole(1, 64 << 20), "With --send: the size of every reply, in bytes.", "requests")
    ] = None
    reply_length: Annotated[
        str | None,
        Option(LENGTH, "With --send: each reply begins with its length: u8, u16be, u32le@4+8.", "requests"),
    ] = None
    repeatable: Annotated[
        bool, Option(SWITCH, "Requests may be resent if their connection ends before the reply.", "requests")
    ] = False

    @property
    def are_own(self) -> bool:
        """Whether the user says what is requested. netdyno's own servers then have no right reply."""
        return bool(self.path) or self.send is not None

    @property
    def may_change_state(self) -> bool:
        """Whether a server may have another state after these requests."""
        return self.send is not None or self.data is not None or self.method not in (None, "GET", "HEAD")


_OPTIONS = declared(OwnRequests)
NAMES = tuple(OwnRequests.__struct_fields__)
HTTP = ("path", "method", "header", "data", "expect_status", "verify")
BYTE_OPTIONS = ("send", "expect", "reply-until")
EXCHANGE = ("expect", "reply_until", "reply_size", "reply_length")


def list_options(requests: OwnRequests) -> list[str]:
    """Return the options of a command line that say the same. Pure."""
    return list_flags(_OPTIONS, msgspec.structs.asdict(requests))


def check(requests: OwnRequests, where: str) -> str:
    """Return the contradiction among requests, or an empty text. `where` is what stands before an option's name: two
    dashes, or nothing for a key. Pure."""
    named = {name: f"{where}{name.replace('_', '-')}" for name in NAMES}
    given = [name for name in NAMES if getattr(requests, name) not in (None, (), False)]
    of_http, of_bytes = ([name for name in given if name in names] for names in (HTTP, EXCHANGE))
    if requests.send is not None and of_http:
        return f"{named[of_http[0]]} is for http, and {named['send']} is not; leave one of them out"
    if requests.send is None and of_bytes:
        return f"{named[of_bytes[0]]} goes with {named['send']}"
    ends = [name for name in ("reply_until", "reply_size", "reply_length") if name in given]
    if len(ends) > 1:
        return f"{named[ends[0]]} and {named[ends[1]]} both say where a reply ends; leave one of them out"
    if requests.verify == "echo" and (others := [name for name in given if name != "verify"]):
        return f"{named['verify']} echo: each request has a URL of its own; leave {named[others[0]]} out"
    if sum(len(word) for word in list_options(requests)) > MOST_TEXT:
        return f"{named[given[0]]}: all requests together have at most {MOST_TEXT >> 10} KiB"
    return ""


def check_stored(requests: OwnRequests) -> str:
    """Return the fault of stored requests that no user can have given, such as a text that would name a file; else an
    empty text. Pure."""
    texts = [*requests.path, *requests.header]
    texts += [text for name in NAMES if isinstance(text := getattr(requests, name), str)]
    if any(text.startswith(FILE) for text in texts):
        return "a request that names a file"
    return check(requests, "")
