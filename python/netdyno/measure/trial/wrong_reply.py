"""The sentence for a server of the user's own that has no right reply: what was sent, what was expected, what came, and
which option accepts it. Pure."""

from __future__ import annotations

import re

from netdyno.model.load_result import LoadResult
from netdyno.model.options import Settings

SHOWN = 80
"""The most characters of a message that are shown."""
TLS_ALERT = r"\x15\x03"
"""The beginning of a server's reply that expects TLS (RFC 8446, 5.1)."""
NEWLINE = r"\n"
_CUT_ESCAPE = re.compile(r"\\(x[0-9a-f]?)?$")
_LOCATION = re.compile(r"\\r\\nlocation: *(?:https?://[^/\\]*)?(/[^\\]*)", re.IGNORECASE)


def explain(name: str, settings: Settings, load: LoadResult, wait_s: float) -> str:
    sent, received = (load.first_exchange.sent, load.first_exchange.received) if load.first_exchange else ("", "")
    came = _shorten(received) if received else _describe_silence(load, wait_s)
    return (
        f"{name} has no right reply to the first requests. Sent: {_shorten(sent)}. "
        f"Expected: {_describe_expected(settings)}. Came: {came}. {_advise(settings, load, received)}"
    )


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


def _advise(settings: Settings, load: LoadResult, received: str) -> str:
    if not received:
        return "No option accepts that, unless the server speaks TLS (--tls, or --address https://HOST:PORT)"
    if received.startswith(TLS_ALERT):
        return "The server speaks TLS: write --address https://HOST:PORT, or --tls beside --server"
    if settings.send is not None:
        return _advise_bytes(settings, received)
    if settings.path:
        return _advise_http(load, received)
    if settings.workload == "http" and received.startswith("HTTP/"):
        return "--path accepts it: netdyno's own servers must then not be in the run, for they can only repeat the URL"
    return "--workload says what the server speaks, and --send what any other protocol is sent"


def _advise_bytes(settings: Settings, received: str) -> str:
    if settings.expect is not None and not received.startswith(settings.expect):
        return f"--expect '{_CUT_ESCAPE.sub('', received[:20])}' accepts it"
    return "--reply-until, --reply-size or --reply-length says where such a reply ends"


def _advise_http(load: LoadResult, received: str) -> str:
    statuses = load.replies.statuses if load.replies else {}
    if not statuses:
        if received.startswith("HTTP/"):
            return "It is no whole reply of HTTP/1.1, which no option accepts"
        return "--send, and --expect, are for another protocol than http"
    status = max(statuses, key=lambda code: statuses[code])
    accepts = f"--expect-status {status} accepts it"
    if location := _LOCATION.search(received):
        return f"--path {location[1]} requests what it redirects to; {accepts}"
    if status in ("405", "501"):
        return f"--method requests it in another way; {accepts}"
    return f"--path requests something else; {accepts}"
