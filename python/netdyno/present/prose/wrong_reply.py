"""The sentence for a server of the user's own that has no right reply: what was sent, what was expected, what came, and
which option accepts it. Pure functions."""

from __future__ import annotations

import re

from netdyno.kit.errors import UserError
from netdyno.model.load_result import FirstExchange, LoadResult
from netdyno.model.options import Settings
from netdyno.model.wrong_reply import WrongReply, WrongReplyError

SHOWN = 80
"""The most characters of a message that are shown."""
TLS_ALERT = r"\x15\x03"
"""The beginning of a server's reply that expects TLS (RFC 8446, 5.1)."""
NEWLINE = r"\n"
_CUT_ESCAPE = re.compile(r"\\(x[0-9a-f]?)?$")
_REPLY = re.compile(r"HTTP/1\.[01] (\d{3})")
_LOCATION = re.compile(r"\\r\\nlocation: *(?:https?://[^/\\]*)?(/[^\\]*)", re.IGNORECASE)


def describe_error(error: UserError) -> str:
    """Return the whole line of an error; that of a wrong reply says what was sent, expected and received."""
    return f"{error}. {_describe_wrong(error.wrong)}" if isinstance(error, WrongReplyError) else str(error)


def _describe_wrong(wrong: WrongReply) -> str:
    load = wrong.load
    statuses = load.replies.statuses if load.replies else {}
    status = max(statuses, key=lambda code: statuses[code], default="")
    exchange = load.first_exchange or FirstExchange(sent="", received="")
    return describe_exchange(wrong.settings, exchange, status, _describe_silence(load, wrong.wait_s))


def describe_exchange(settings: Settings, exchange: FirstExchange, status: str, silence: str = "nothing") -> str:
    """Say what was sent, expected and received, and which option accepts that. `status`: that of whole replies of http,
    empty for others; `silence`: how nothing came."""
    sent, received = exchange.sent, exchange.received
    return (
        f"Sent: {_shorten(sent)}. Expected: {_describe_expected(settings)}. "
        f"Came: {_shorten(received) if received else silence}. {_advise(settings, status, received)}"
    )


def read_status(received: str) -> str:
    """Return the status of a reply of http; empty for any other."""
    match = _REPLY.match(received)
    return match[1] if match else ""


def _shorten(text: str) -> str:
    """Return the beginning of an escaped text; an escape is not cut in two."""
    return text if len(text) <= SHOWN else _CUT_ESCAPE.sub("", text[:SHOWN]) + " ..."


def _describe_silence(load: LoadResult, wait_s: float) -> str:
    faults = load.replies.faults if load.replies else ()
    return f"nothing ({faults[0].what})" if faults else f"nothing within {wait_s:g} s"


def _describe_expected(settings: Settings) -> str:
    if settings.send is not None:
        begin = f"a reply that begins with {settings.expect}" if settings.expect else "a reply"
        return f"{begin} and {_describe_end(settings)}"
    if settings.path:
        return f"a whole reply of HTTP/1.1 with status {settings.expect_status or '2xx'}"
    if settings.workload == "http":
        return "status 200, and a body that repeats the URL"
    return f"a reply of the workload {settings.workload}, which repeats what was sent"


def _describe_end(settings: Settings) -> str:
    if settings.reply_size is not None:
        return f"has {settings.reply_size} bytes"
    if settings.reply_length is not None:
        return f"has the length that its {settings.reply_length} says"
    return f"ends with {settings.reply_until or NEWLINE}"


def _advise(settings: Settings, status: str, received: str) -> str:
    if not received:
        return (
            "No option accepts silence. A server that speaks TLS needs --tls, or --address https://HOST:PORT; one that "
            "listens before it can answer needs --ready-path"
        )
    if received.startswith(TLS_ALERT):
        return "The server speaks TLS: write --address https://HOST:PORT, or --tls with --server"
    if settings.send is not None:
        return _advise_bytes(settings, received)
    if settings.path:
        return _advise_http(status, received, has_data=settings.data is not None)
    if settings.workload == "http" and received.startswith("HTTP/"):
        return "--path accepts it: netdyno's own servers must then not be in the run, for they can only repeat the URL"
    return "--workload says what the server speaks, and --send what any other protocol is sent"


def _advise_bytes(settings: Settings, received: str) -> str:
    if settings.expect is not None and not received.startswith(settings.expect):
        return f"--expect '{_CUT_ESCAPE.sub('', received[:20])}' accepts it"
    return "--reply-until, --reply-size or --reply-length says where such a reply ends"


def _advise_http(status: str, received: str, *, has_data: bool) -> str:
    if not status:
        if received.startswith("HTTP/"):
            return "It is no whole reply of HTTP/1.1, which no option accepts"
        return "--send, and --expect, are for another protocol than http"
    accepts = f"--expect-status {status} accepts it"
    if location := _LOCATION.search(received):
        return f"--path {location[1]} requests what it redirects to; {accepts}"
    if status in ("405", "501"):
        return f"--method requests it in another way; {accepts}"
    if status in ("401", "403", "407"):
        return f"--header 'Authorization: ...' says who requests it; {accepts}"
    if status in ("400", "415", "422") and has_data:
        return f"--header 'Content-Type: application/json' says what --data is; {accepts}"
    return f"--path requests something else; {accepts}"
