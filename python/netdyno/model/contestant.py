"""A contestant: its manifest, its start, and the record of its code in a stored run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Literal, get_args

from netdyno.model.base import Frozen, Number
from netdyno.model.own_requests import SWITCH
from netdyno.model.values import ENVIRONMENT, NAME, PATH, TIME, Option, declared

GENERATOR = "netdyno-load"
"""The name of the load generator, in place of that of a client contestant."""

OF_FRAMEWORKS = ("web", "grpc")
"""The workloads whose servers need nothing else of protocol/WIRE.md, so that frameworks speak them: each request says
which time and size it asks for."""

ManifestOption = Literal["accept", "application-tick", "busy-poll", "pool", "read-mode", "sigpipe", "tls"]
MANIFEST_OPTIONS: tuple[str, ...] = get_args(ManifestOption)
"""The options that a server has only if its manifest names them."""


class Manifest(Frozen):
    """server.json or client.json of one contestant, as CMake reads it too. The folder's name is the identity and not
    repeated here.

    `clients`: whether a client beyond the thread count waits until another leaves (docs/adr/limited-by-threads.md):
    accepted, in the server's queue; "limited-by-processes" where each thread is a process and accepts no client before
    it is free, so that others wait in the kernel's.
    `descriptors_per_client`: the file descriptors that a client takes in the server, those of its thread included.
    `unsafe`: the defect of a server that gives wrong answers on purpose. `unranked`: the nature of a server that is no
    contestant (docs/adr/unranked.md). `instrument`: the parts of a result that a client does not report because it is a
    foreign load program (docs/adr/instruments.md). `copies`: where the program itself copies the bytes of a message, as
    far as its source shows it. `loads`: patterns (glob) of the files that its program loads besides those in `run`.
    `options`: those that it takes besides the ones of every server of its transport.
    """

    kind: Literal["cmake", "cargo", "erlang", "go", "java", "command", "framework"]
    model: str
    summary: str
    workloads: tuple[str, ...]
    transports: tuple[str, ...] = ("tcp",)
    needs: tuple[str, ...] = ()
    threads: Literal["any", "one", "per-connection"] = "one"
    clients: Literal["any", "limited-by-threads", "limited-by-processes"] = "any"
    descriptors_per_client: int = 1
    options: tuple[ManifestOption, ...] = ()
    asynchronous: bool = True
    # The fate of a new connection while a server has no descriptor for it.
    out_of_descriptors: Literal["waits", "closes"] = "waits"
    # The reaction of a server without memory for a message: it closes that client, or its runtime ends it.
    out_of_memory: Literal["closes", "ends"] = "closes"
    caveats: tuple[str, ...] = ()
    unsafe: str = ""
    unranked: str = ""
    instrument: str = ""
    copies: str = ""
    build: tuple[str, ...] = ()
    run: tuple[str, ...] = ()
    loads: tuple[str, ...] = ()
    # Of frameworks (protocol/WIRE.md, Web): the programs that must be on PATH, with the way to get each; the command
    # that prints its version; its settings, and the document that recommends them; whether it can spend a service time,
    # and whether it answers with streams. `build` builds it, by a script of packages/frameworks/, from a lock file in
    # its folder; `run` starts it: {address}, {port} and {threads} are filled in, {folder} is its own, {build} the
    # build's.
    tools: Mapping[str, str] = {}
    version: tuple[str, ...] = ()
    settings: str = ""
    spends_time: bool = True
    streams: bool | None = None

    @property
    def is_framework(self) -> bool:
        """Whether it has an HTTP stack of its own, and nothing else of the contract: it is started as a server of the
        user's own is."""
        return self.kind == "framework"

    @property
    def has_streams(self) -> bool:
        """Whether it answers with streams (protocol/WIRE.md, Web): a framework that says so, and others but where one
        says that it does not."""
        return not self.is_framework if self.streams is None else self.streams

    @property
    def is_built(self) -> bool:
        """Whether CMake makes its program (cmake/Contestants.cmake), with the builder of its language."""
        return self.kind not in ("command", "framework")

    @property
    def has_builds(self) -> bool:
        """Whether its program is compiled with other flags for a level of `build`."""
        return self.kind == "cmake"

    @property
    def has_postgresql_driver(self) -> bool:
        """Whether it can ask PostgreSQL: by libpq (lib/postgresql/)."""
        return self.kind == "cmake" and "pool" in self.options

    @property
    def is_launched(self) -> bool:
        """Whether a server of this kind gets its options resolved, from the launcher (protocol/WIRE.md)."""
        return self.kind not in ("cmake", "framework")

    @property
    def limits_clients(self) -> bool:
        """Whether a client beyond the thread count waits until another leaves."""
        return self.clients != "any"

    @property
    def apart(self) -> bool:
        """Whether it is in no pattern and no ranking; a claim may name it only where no client reads."""
        return bool(self.unsafe or self.unranked)


class Own(Frozen):
    """A server of the user's own, which knows nothing of protocol/WIRE.md: the workload that it speaks, and either the
    command line that starts it or the URL at which it already runs.

    `host`: the name in its address, which its requests have in their header Host; empty for a number.

    `closes`: it closed each connection after a reply at its first requests (measure/trial/first_requests.py).

    `overhead_s`: how long it took to be ready and to end at its first requests; 0 where it has had none.

    `knobs`: the levels of its own options that are compared, which `command` holds in place of `{workers}` and the like
    in `template`: servers with one template are siblings."""

    command: str
    workload: str
    address: str = ""
    host: str = ""
    env: Annotated[
        tuple[str, ...], Option(ENVIRONMENT, "A variable for your server; may be repeated.", "own server")
    ] = ()
    directory: Annotated[str, Option(NAME, "Folder to start your server in (default: here).", "own server")] = ""
    unix_socket: Annotated[
        str, Option(NAME, "The file your server listens at, not a port: '/tmp/mine-{port}'.", "own server")
    ] = ""
    tls: Annotated[bool, Option(SWITCH, "Your server speaks TLS (certificate unchecked).", "own server")] = False
    ready_path: Annotated[
        str, Option(PATH, "Your server is ready when this answers 2xx (default: it accepts).", "own server")
    ] = ""
    ready_timeout_s: Annotated[Number, Option(TIME, "How long your server may start (default 1m).", "own server")] = (
        60.0
    )
    closes: bool = False
    overhead_s: float = 0.0
    template: str = ""
    knobs: Mapping[str, str] = {}


OWN_SETTINGS = declared(Own)
"""The options of one's own servers, by name."""


class Contestant(Frozen):
    """One discovered folder, or a server of the user's own: its manifest, and either the command that starts it or the
    reason why it cannot start. `loads` are the manifest's patterns, with paths in them."""

    name: str
    manifest: Manifest
    command: tuple[str, ...]
    available: bool
    why_not: str = ""
    own: Own | None = None
    loads: tuple[str, ...] = ()

    @property
    def has_stand_in(self) -> bool:
        """Whether a program of the harness stands in for what it lacks of the contract (stand_in.py)."""
        return self.own is not None or self.manifest.is_framework


END_OF_PROGRAM = "--"
"""The separator between a program and its options where the launcher starts it (launch/main.cpp)."""


def launched(launcher: str, name: str, manifest: Manifest, program: Sequence[str]) -> tuple[str, ...]:
    """Return the command by which the launcher starts a program and reads its options for it."""
    offers = "".join(f",{option}" for option in ("tls", "pool") if option in manifest.options)
    return (launcher, name, f"{manifest.threads}{offers}", *program, END_OF_PROGRAM)


def behind_launcher(command: Sequence[str]) -> tuple[str, ...]:
    """Return the command that the launcher starts, or the command itself where no launcher does."""
    return tuple(command[3:-1] if command and command[-1] == END_OF_PROGRAM else command)


class CodeSize(Frozen):
    """Source files: lines without blanks and comments, and McCabe's cyclomatic complexity (codesize.py)."""

    files: int
    lines: int
    functions: int
    complexity: int
    complexity_max: int


class About(Frozen):
    """A contestant, or code that contestants share, as recorded in a stored run. `code` is None where it could not be
    counted; `why_no_code` has the reason. `family` names the shared code that counts with a contestant's own. `unsafe`,
    `unranked`, `copies` and `threads` are the manifest's; `threads` is None for shared code, clients, and servers of
    the user's own. `own`: a server of the user's own. `language`: the language of most of a contestant's source files;
    empty where it is unknown."""

    kind: Literal["server", "client", "shared"]
    name: str
    model: str = ""
    summary: str = ""
    caveats: tuple[str, ...] = ()
    unsafe: str = ""
    unranked: str = ""
    copies: str = ""
    threads: Literal["any", "one", "per-connection"] | None = None
    code: CodeSize | None = None
    why_no_code: str = ""
    family: tuple[str, ...] = ()
    own: Own | None = None
    language: str = ""


def stands_already(contestant: Contestant | About) -> bool:
    """Whether the contestant is a server at an address: netdyno neither starts nor ends it, and it may be elsewhere."""
    return contestant.own is not None and bool(contestant.own.address)
