"""The cases behind protocol/golden.json: for each rule of WIRE.md the bytes that test it.

`python -m tests.contract.golden` writes the file; a test compares the committed one with what this makes.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from netdyno.kit.paths import ROOT
from tests.contract.golden import wire
from tests.contract.golden.sessions import SessionOptions, serve

GOLDEN = ROOT / "protocol" / "golden.json"

ABOUT = (
    "Byte vectors for the rules of WIRE.md, made by tests/contract/golden (python -m tests.contract.golden). "
    "Feed the chunks (hex) to a "
    "session with the given options, then end the stream where 'ends' is true: the effects come in this order, however "
    "the chunks are sliced. In mode gathered adjacent writes are joined before comparing, and in echo always. A "
    "broadcast lists one string per write. 'requests' is null where it depends on the slicing. The line Date of http "
    "replies is left out."
)


@dataclass(frozen=True)
class GoldenCase:
    """One stream that a client sends."""

    name: str
    workload: str
    chunks: tuple[bytes, ...]
    ends: bool = False
    options: dict[str, str] = field(default_factory=dict)


def document() -> str:
    """The whole of golden.json."""
    vectors = [_vector(case) for case in cases()]
    names = [vector["name"] for vector in vectors]
    assert len(set(names)) == len(names), "two vectors have one name"
    return json.dumps({"about": ABOUT, "vectors": vectors, "stamps": list(_stamps())}, indent=1) + "\n"


def cases() -> Iterator[GoldenCase]:
    """Every case, by workload."""
    yield from _echo()
    yield from _lines()
    for workload, body in (("rpc", wire.request(7, b"stamp")), ("chat", b"hello")):
        yield from _framing(workload, body)
    yield from _rpc()
    yield from _chat()
    yield from _http()


def _vector(case: GoldenCase) -> dict[str, object]:
    outcome = serve(case.workload, SessionOptions.parse(case.options), b"".join(case.chunks), case.ends)
    return {
        "name": f"{case.workload}: {case.name}",
        "workload": case.workload,
        "options": case.options,
        "resolved": resolved(case.workload, case.options),
        "chunks": [chunk.hex() for chunk in case.chunks],
        "ends": case.ends,
        "effects": outcome.effects,
        "requests": outcome.requests,
        "protocol_errors": outcome.protocol_errors,
    }


def resolved(workload: str, options: Mapping[str, str]) -> str:
    """The options as the launcher hands them to a server that is not written in C++."""
    parsed = SessionOptions.parse(options)
    values = {
        "host": "127.0.0.1",
        "port": 0,
        "workload": workload,
        "threads": 1,
        "backlog": 4096,
        "nodelay": True,
        "read_buffer": 16384,
        "write_mode": options.get("write-mode", "gathered"),
        "audience": options.get("audience", "others"),
        "deliveries": "joined",
        "service_time_ns": parsed.service_ns,
        "service_kind": options.get("service-kind", "wait"),
        "max_frame": parsed.max_frame,
        "outbox_limit": 4 << 20,
    }
    return json.dumps(values, separators=(",", ":"))


def _stamps() -> Iterator[dict[str, object]]:
    for client, sequence, size in (
        (0, 0, 28),
        (1, 1, 30),
        (0xFFFF_FFFF, 999_999_999_999, 28),
        (0xDEAD_BEEF, 42, 29),
        (0x0000_00AB, 25, 64),
        (3, 26, 300),
    ):
        yield {
            "client": client,
            "sequence": sequence,
            "size": size,
            "text": wire.stamp(client, sequence, size).decode(),
        }


SPLIT = {"write-mode": "split"}


def _echo() -> Iterator[GoldenCase]:
    yield GoldenCase("bytes as they come", "echo", (b"ab\n", b"\x00\xff"))
    yield GoldenCase("nothing, then the end", "echo", (), ends=True)
    yield GoldenCase("half-close after bytes", "echo", (b"last words",), ends=True)
    yield GoldenCase("split changes nothing but the writes", "echo", (b"one", b"two"), options=SPLIT)


def _lines() -> Iterator[GoldenCase]:
    yield GoldenCase("one line", "lines", (b"hello\n",))
    yield GoldenCase("several lines in one read, gathered", "lines", (b"a\nbb\n\nccc\n",))
    yield GoldenCase(
        "several lines in one read, split writes once per line", "lines", (b"a\nbb\n\nccc\n",), options=SPLIT
    )
    yield GoldenCase("a line over several reads", "lines", (b"hel", b"lo", b"\nwor", b"ld\n"))
    yield GoldenCase("an unterminated line waits", "lines", (b"done\nnot yet",))
    yield GoldenCase("an unterminated last line is echoed at the end", "lines", (b"done\nnot yet",), ends=True)
    yield GoldenCase("the end at a boundary", "lines", (b"done\n",), ends=True)
    yield GoldenCase("only a newline ends a line", "lines", (b"a\rb\x0bc\x0cd\x00\r\n",))
    limit = {"max-frame": "8"}
    yield GoldenCase("a line as long as the limit, newline included", "lines", (b"1234567\n",), options=limit)
    yield GoldenCase("a line longer than the limit", "lines", (b"ok\n12345678\n",), options=limit)
    yield GoldenCase("an unterminated line longer than the limit", "lines", (b"ok\n123456789",), options=limit)
    yield GoldenCase("nothing after a protocol error", "lines", (b"123456789", b"\nmore\n"), ends=True, options=limit)


def _framing(workload: str, body: bytes) -> Iterator[GoldenCase]:
    message = wire.frame(body)
    limit = {"max-frame": str(len(body))}
    for name, chunks, ends, options in (
        ("one message", (message,), False, {}),
        ("one message, split", (message,), False, SPLIT),
        ("three messages in one segment", (message * 3,), False, {}),
        ("three messages in one segment, split", (message * 3,), False, SPLIT),
        ("a message in three pieces", (message[:2], message[2:5], message[5:]), False, {}),
        ("an incomplete message waits", (message + message[:-1],), False, {}),
        ("the end at a boundary", (message,), True, {}),
        ("the end inside a header", (message + message[:3],), True, {}),
        ("the end inside a body", (message + message[:-1],), True, {}),
        ("nothing, then the end", (), True, {}),
        ("a body as long as the limit", (message,), False, limit),
        ("a length of limit + 1", (message + wire.header(len(body) + 1) + body,), False, limit),
        ("a length of 1 MiB + 1, the default limit", (wire.header((1 << 20) + 1),), False, {}),
        ("a length of 0", (message + wire.header(0) + message,), False, {}),
        ("a length of 2^32-1", (message + wire.header(2**32 - 1) + message,), False, {}),
        ("a length of 2^31", (wire.header(2**31) + message,), True, {}),
        ("garbage", (b"GET / HTTP/1.1\r\n\r\n",), False, {}),
        ("nothing after a protocol error", (wire.header(0), message), True, {}),
    ):
        yield GoldenCase(name, workload, chunks, ends, options)


def _rpc() -> Iterator[GoldenCase]:
    for name, options, workload_us in (
        ("no service time", {}, 0),
        ("service time of the server, waiting", {"service-time": "5ms"}, 0),
        ("service time of the server, burning", {"service-time": "5ms", "service-kind": "cpu"}, 0),
        ("service time of the request", {}, 250),
        ("both service times add up", {"service-time": "1us", "service-kind": "cpu"}, 3),
        ("the longest service time", {}, 10_000_000),
        ("a longer service time", {}, 10_000_001),
        ("a negative service time", {}, -1),
    ):
        two = wire.frame(wire.request(1, b"a", workload_us)) + wire.frame(wire.request(2, b"b"))
        yield GoldenCase(name, "rpc", (two,), options=options)
    yield GoldenCase("job_id 2^32-1", "rpc", (wire.frame(wire.request(2**32 - 1, b"x")),))
    yield GoldenCase("an empty request has defaults", "rpc", (wire.frame(wire.request(0)),))
    yield GoldenCase("a stamp of any bytes", "rpc", (wire.frame(wire.request(3, bytes(range(256)))),))
    yield GoldenCase("a stamp of 1000 bytes", "rpc", (wire.frame(wire.request(4, b"s" * 1000)),))
    for name, body in _odd_but_valid():
        yield GoldenCase(name, "rpc", (wire.frame(body),))
    good = wire.frame(wire.request(9, b"before"))
    for name, body in _not_a_request():
        yield GoldenCase(name, "rpc", (good + wire.frame(body) + good,))


def _odd_but_valid() -> Iterator[tuple[str, bytes]]:
    job = wire.number_field(1, 5)
    unknown = wire.number_field(15, 1) + wire.bytes_field(16, b"?") + b"\x8d\x01" + bytes(4) + b"\x91\x01" + bytes(8)
    yield "fields in another order", wire.bytes_field(1, wire.bytes_field(3, b"s") + job)
    yield "the last of a repeated field counts", wire.bytes_field(1, wire.number_field(1, 4) + job)
    yield "unknown fields are skipped", unknown + wire.bytes_field(1, unknown + job + unknown) + unknown
    yield "an unknown group is skipped", wire.bytes_field(1, b"\x7b" + wire.number_field(1, 9) + b"\x7c" + job)
    yield "a field of another wire type is unknown", wire.bytes_field(1, wire.bytes_field(1, b"x") + job)
    yield "a repeated message is merged", wire.request(5) + wire.request(0, b"s")
    yield "the last member of the oneof counts", wire.response(1, b"no") + wire.request(5, b"yes")
    yield "an overlong varint", wire.bytes_field(1, b"\x08\x85\x80\x80\x00")
    yield "a number of more than 32 bits loses the upper ones", wire.bytes_field(1, wire.number_field(1, 2**32 + 5))
    yield "a number of more than 64 bits, too", wire.bytes_field(1, b"\x08\x85" + b"\x80" * 8 + b"\x7e" + job)
    yield "a number of more than 64 bits, unknown", wire.bytes_field(1, job + b"\x78" + b"\xff" * 9 + b"\x7f")
    yield "a tag and a length of 5 bytes", b"\x8a\x80\x80\x80\x00\x82\x80\x80\x80\x00" + job
    yield "the highest tag", wire.bytes_field(1, b"\xf8\xff\xff\xff\x0f\x01" + job)
    yield "a tag in bytes that are none", wire.bytes_field(1, job) + b"\x7b\x0a\x06\x80\x80\x80\x80\x10\x01\x7c"
    yield "100 groups", _groups(100) + wire.bytes_field(1, job)
    yield "99 groups in a request", wire.bytes_field(1, _groups(99) + job)


def _not_a_request() -> Iterator[tuple[str, bytes]]:
    yield "a response instead of a request", wire.response(1, b"s")
    yield "a request taken back by a response", wire.request(1) + wire.response(1)
    yield "only unknown fields", wire.number_field(15, 1)
    yield "bytes that are no Protobuf", b"\xff" * 12
    yield "a varint that is cut off", b"\x08\x80"
    yield "a field that is cut off", wire.request(1, b"stamp")[:-1]
    yield "a nested message that lies about its length", b"\x0a\x02\x1a\x05ab"
    yield "a nested message longer than the body", b"\x0a\xff\xff\xff\xff\x01\x1a\xdd\xdd\xdd"
    yield "a text that is longer than the body", b"\x0a\xff\xff\xff\x7f\x1a\xff\xff\xff\x3fx"
    yield "field number 0", wire.request(1) + b"\x00\x01"
    yield "wire type 7", wire.request(1) + b"\x0f"
    yield "a group without end", wire.request(1) + b"\x7b"
    yield "an end without a group", wire.request(1) + b"\x7c"
    yield "an end without a group, in a request", wire.bytes_field(1, b"\x08\x01\x7c")
    around_odd: tuple[tuple[str, Callable[[bytes], bytes]], ...] = (
        ("", lambda odd: wire.request(1) + odd),
        (", in a request", lambda odd: wire.bytes_field(1, b"\x08\x01" + odd)),
    )
    for where, around in around_odd:
        yield "a tag of 6 bytes" + where, around(b"\x88\x81\x80\x80\x80\x00\x01")
        yield "a length of 6 bytes" + where, around(b"\x82\x01\x81\x80\x80\x80\x80\x00x")
        yield "a tag of 33 bits" + where, around(b"\x88\x81\x80\x80\x10\x01")
        yield "a tag of 33 bits in a group" + where, around(b"\x7b\x88\x81\x80\x80\x10\x01\x7c")
        yield "the end of a group with a tag of 33 bits" + where, around(b"\x7b\xfc\x80\x80\x80\x10")
    yield "101 groups", wire.request(1) + _groups(101)
    yield "100 groups in a request", wire.bytes_field(1, _groups(100))


def _groups(depth: int) -> bytes:
    """Unknown ones, one in the other."""
    return b"\x7b" * depth + b"\x7c" * depth


def _chat() -> Iterator[GoldenCase]:
    yield GoldenCase("any bytes", "chat", (wire.frame(bytes(range(256))),))
    yield GoldenCase("a body of 1000 bytes", "chat", (wire.frame(b"c" * 1000),))
    yield GoldenCase("audience all is the same work", "chat", (wire.frame(b"me too"),), options={"audience": "all"})


def _http() -> Iterator[GoldenCase]:
    get = b"GET /one HTTP/1.1\r\nHost: x\r\n\r\n"
    head = b"HEAD" + get[3:]
    yield GoldenCase("a request", "http", (get,))
    yield GoldenCase("a request, split", "http", (get,), options=SPLIT)
    yield GoldenCase("a host of no name", "http", (b"GET / HTTP/1.1\r\nHost:\r\n\r\n",))
    yield GoldenCase("pipelining", "http", (get + get.replace(b"one", b"two") + get[:-1],))
    yield GoldenCase("pipelining, split", "http", (get * 2,), options=SPLIT)
    yield GoldenCase("HEAD, as GET without the body", "http", (get + head + get,))
    yield GoldenCase("HEAD, split", "http", (head * 2,), options=SPLIT)
    yield GoldenCase("a request in three pieces", "http", (get[:5], get[5:-2], get[-2:]))
    yield GoldenCase("empty lines before a request", "http", (b"\r\n" + get + b"\r\n\r\n\r\n" + get,))
    yield GoldenCase("half an empty line", "http", (get + b"\r",), ends=True)
    yield GoldenCase("the end at a boundary", "http", (get,), ends=True)
    yield GoldenCase("the end after an empty line", "http", (get + b"\r\n",), ends=True)
    yield GoldenCase("the end inside a head", "http", (get + get[:-2],), ends=True)
    for name, line in (
        ("Connection: close", b"Connection: close"),
        ("header names and tokens ignore case", b"cOnNeCtIoN: cLoSe"),
        ("close in a list", b"Connection: keep-alive , close"),
        ("close in a second header", b"Connection: keep-alive\r\nConnection: close"),
        ("space around a value", b"Connection:\t close \t"),
        ("not every mention of close", b"X-Connection: close\r\nConnection: enclosed, closed"),
        ("an empty header", b"X-Empty:"),
        ("Content-Length: 0 is no body", b"Content-Length: 0"),
        ("a control character in a value", b"X: \x01\x7f\xff"),
        ("an expectation of a request without a body", b"Expect: 100-continue"),
    ):
        yield GoldenCase(name, "http", (b"GET /a HTTP/1.1\r\nHost: x\r\n" + line + b"\r\n\r\n" + get,))
    old = b"GET /old HTTP/1.0\r\n"
    yield GoldenCase("HTTP/1.0 closes after the reply", "http", (old + b"\r\n" + get,))
    yield GoldenCase("HTTP/1.0 with a host", "http", (old + b"Host: x\r\n\r\n" + get,))
    yield GoldenCase("HTTP/1.0 keep-alive", "http", (old + b"Connection: Keep-Alive\r\n\r\n" + get,))
    yield GoldenCase("HTTP/1.0 that says both", "http", (old + b"Connection: close, keep-alive\r\n\r\n" + get,))
    yield GoldenCase(
        "a target of every allowed character",
        "http",
        (b"GET " + bytes(range(0x21, 0x7F)) + b" HTTP/1.1\r\nHost: x\r\n\r\n",),
    )
    for name, options in (
        ("service time, waiting", {"service-time": "5ms"}),
        ("service time, burning", {"service-time": "10us", "service-kind": "cpu"}),
    ):
        yield GoldenCase(f"{name}, of each request", "http", (get + head,), options=options)
        yield GoldenCase(f"{name}, and not of one that is refused", "http", (get + b"x\r\n\r\n",), options=options)
    yield from _http_refused(get)
    yield from _http_limits()


def _http_refused(get: bytes) -> Iterator[GoldenCase]:
    for name, line in (
        ("400: an empty method", b" / HTTP/1.1"),
        ("400: no version", b"GET /"),
        ("400: HTTP/2.0", b"GET / HTTP/2.0"),
        ("400: lower-case version", b"GET / http/1.1"),
        ("400: two spaces", b"GET  / HTTP/1.1"),
        ("400: a space at the end", b"GET / HTTP/1.1 "),
        ("400: a method that is no token", b"GE(T / HTTP/1.1"),
        ("400: a control character in the target", b"GET /\x01 HTTP/1.1"),
        ("400: a target that is not ASCII", b"GET /\xc3\xa9 HTTP/1.1"),
        ("400: garbage", bytes(range(1, 13))),
        ("501: a method that is not served", b"POST / HTTP/1.1"),
        ("501: methods are case-sensitive", b"get / HTTP/1.1"),
    ):
        yield GoldenCase(name, "http", (get + line + b"\r\nHost: x\r\n\r\n" + get,), ends=True)
    for name, method, headers in (
        ("400: no host", b"GET", b"X: x"),
        ("400: two hosts", b"GET", b"Host: x\r\nHOST: x"),
        ("400: a header without colon", b"GET", b"Host: x\r\nnonsense"),
        ("400: a space before the colon", b"GET", b"Host : x"),
        ("400: a folded header", b"GET", b"Host: b\r\n c"),
        ("400: a header without name", b"GET", b"Host: x\r\n: x"),
        ("400: NUL in a value", b"GET", b"Host: x\r\nX: a\0b"),
        ("400: a bare CR in a value", b"GET", b"Host: x\r\nX: a\rb"),
        ("400: a bare LF in a value", b"GET", b"Host: x\r\nX: a\nb"),
        ("400: a malformed request of a method that is not served", b"POST", b"Host: x\r\nnonsense"),
        ("400: no host, of a method that is not served", b"POST", b"X: x"),
        ("501: a method that is not served, with a body", b"POST", b"Host: x\r\nContent-Length: 5"),
        ("400: Content-Length", b"GET", b"Host: x\r\ncontent-LENGTH: 5"),
        ("400: Transfer-Encoding", b"HEAD", b"Host: x\r\nTransfer-Encoding: chunked"),
    ):
        yield GoldenCase(name, "http", (get + method + b" / HTTP/1.1\r\n" + headers + b"\r\n\r\n" + get,), ends=True)
    yield GoldenCase(
        "400: two hosts in HTTP/1.0", "http", (b"GET / HTTP/1.0\r\nHost: x\r\nHost: x\r\n\r\n",), ends=True
    )
    yield GoldenCase("400: no headers at all", "http", (b"GET / HTTP/1.1\r\n\r\n" + get,), ends=True)


def _http_limits() -> Iterator[GoldenCase]:
    """A head is counted without the CRLF CRLF that ends it, and without the empty lines before it."""
    for limit, options in ((16 << 10, {}), (64, {"max-frame": "64"})):
        name = f"with --max-frame {options['max-frame']}" if options else "by default"
        longest = b"GET / HTTP/1.1\r\nHost: x\r\nX: ".ljust(limit, b"x")
        target = b"GET /".ljust(limit, b"t")
        yield GoldenCase(f"a head of {limit} bytes {name}", "http", (b"\r\n" + longest + b"\r\n\r\n",), options=options)
        yield GoldenCase(f"400: a head of {limit + 1} bytes {name}", "http", (longest + b"x\r\n\r\n",), options=options)
        yield GoldenCase(f"400: {limit + 4} bytes without end {name}", "http", (longest + b"xxxx",), options=options)
        yield GoldenCase(f"400: {limit + 4} bytes of a line {name}", "http", (target + b"tttt",), options=options)
