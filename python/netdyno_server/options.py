"""The options that every server takes, as the launcher hands them over: protocol/WIRE.md, "Options".

Most starts of a server in the tests end here, so this imports nothing that takes time."""

from __future__ import annotations

import json
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from ssl import SSLContext


class Options:
    """The options, read once, never changed. Sizes are bytes, durations nanoseconds; `service_kind` is the effect of
    that name."""

    def __init__(self, program: str, resolved: str) -> None:
        """Read one JSON object."""
        values = json.loads(resolved)
        self.program = program
        self.listen: tuple[str, int] = (values["host"], values["port"])
        self.workload: str = values["workload"]
        self.backlog: int = values["backlog"]
        self.nodelay: bool = values["nodelay"]
        self.read_buffer: int = values["read_buffer"]
        self.split: bool = values["write_mode"] == "split"
        self.to_all: bool = values["audience"] == "all"
        self.single: bool = values["deliveries"] == "single"
        self.service_time: int = values["service_time_ns"]
        self.service_kind: str = "burn" if values["service_kind"] == "cpu" else "wait"
        self.max_frame: int = values["max_frame"]
        self.outbox_limit: int = values["outbox_limit"]
        self.backend: tuple[str, int] = (values.get("backend_host", ""), values.get("backend_port", 0))
        self.pool: int = values.get("pool", 0)
        self.tls: SSLContext | None = load_certificate(values["tls"]) if "tls" in values else None


def load_certificate(file: str) -> SSLContext:
    """Return what all connections over TLS have in common, by the certificate and the key in a file."""
    import ssl

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2  # not left to the machine's openssl.cnf
    context.load_cert_chain(file)
    return context


def read_options(command_line: Sequence[str]) -> Options:
    """Read the options; ends the program with exit 2 where the launcher did not start it. A server is called as its
    folder."""
    program = os.path.basename(os.path.dirname(os.path.abspath(command_line[0])))  # noqa: PTH119, PTH120, PTH100
    if len(command_line) != 2 or not command_line[1].startswith("{"):
        print(f"{program}: wants its resolved options as one JSON argument: ./netdyno serve {program}", file=sys.stderr)
        sys.exit(2)
    return Options(program, command_line[1])
