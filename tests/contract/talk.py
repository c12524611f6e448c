"""What the clients of each workload say, and what they are answered, whatever carries it: streams
(tcp/stream_talk.py) and transports of messages (messages/message_talk.py)."""

from __future__ import annotations

from tests.contract.golden import wire

STAMP = 40  # bytes; small messages are the rule here, large ones are a matter of single tests


def message(workload: str, client: int, number: int, size: int = STAMP) -> bytes:
    """One stamped message as bytes on the wire; `size` is that of the stamp."""
    stamp = wire.stamp(client, number, size)
    match workload:
        case "echo" | "lines":
            return stamp + b"\n"
        case "rpc":
            return wire.frame(wire.request(number, stamp))
        case "chat":
            return wire.frame(stamp)
        case "http":
            return b"GET /" + stamp + b" HTTP/1.1\r\nHost: netdyno\r\n\r\n"
    raise ValueError(f"a workload that these suites do not know: {workload}")


def reply(workload: str, client: int, number: int, size: int = STAMP) -> bytes:
    """What the message is answered with, or in chat what the others hear. Of http only the body is the same from every
    server."""
    match workload:
        case "rpc":
            return wire.frame(wire.response(number, wire.stamp(client, number, size)))
        case "http":
            return b"/" + wire.stamp(client, number, size)
    return message(workload, client, number, size)
