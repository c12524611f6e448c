"""A host of a cluster, taken over by an attacker: `python -m tests.support.hostile_host FOLDER ROLE PORT FILE [LIE]`.

Instead of a trial it does the deed (DEEDS) that the trial's contestant is named for. What it sends to be opened would
make FILE. It holds the certificate of its role; the lies are below."""

from __future__ import annotations

import struct
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import msgspec
from distributed.comm.tcp import _add_frames_header
from distributed.core import Status
from distributed.protocol import ToPickle, dumps, pickle, to_serialize

from netdyno.kit.errors import UserError
from netdyno.measure.cluster import authority, daemon, engine
from netdyno.measure.cluster.described import Description
from netdyno.measure.cluster.requests import Request, TrialDone, TrialRequest
from netdyno.measure.cluster.secure_comm import Identity, RoleSecurity
from netdyno.model.trial import Trial
from tests.support.builders.made_claims import made_trial

FILE = Path(sys.argv[4]) if len(sys.argv) > 4 else Path("nowhere")
IS_A_CLIENT, SAYS_IT_IS_A_SERVER = "is-a-client", "says-it-is-a-server"
"""What it is by its certificate, against all that it says; what it says of itself once it has joined."""
PIECE = bytes(1 << 20)


class Trap:
    """Makes a file where it is unpickled."""

    def __reduce__(self) -> tuple[object, tuple[str, str]]:
        return open, (str(FILE), "w")


class TrapError(Exception):
    """The same as an exception."""

    def __reduce__(self) -> tuple[object, tuple[str, str]]:
        return open, (str(FILE), "w")


async def send(comm: Any, message: object) -> None:
    """As Dask would."""
    frames, _, _ = _add_frames_header(dumps(message))
    await comm.stream.write(b"".join(frames))


async def send_pickled(comm: Any, _: TrialRequest) -> None:
    await send(comm, {"piece": ToPickle(Trap()), "last": True})


async def send_serialized(comm: Any, _: TrialRequest) -> None:
    await send(comm, {"piece": to_serialize(Trap()), "last": True})


async def send_a_pickle_as_bytes(comm: Any, _: TrialRequest) -> None:
    await send(comm, {"piece": pickle.dumps(Trap()), "last": True})


async def send_an_exception(comm: Any, _: TrialRequest) -> None:
    trap = to_serialize(pickle.dumps(TrapError()))
    words = {"exception": trap, "traceback": trap, "exception_text": "oh", "traceback_text": ""}
    await send(comm, {"status": "uncaught-error", **words})


async def send_an_exception_as_bytes(comm: Any, _: TrialRequest) -> None:
    trap = pickle.dumps(TrapError())
    await send(comm, {"status": "uncaught-error", "exception": trap, "traceback": trap, "exception_text": "oh"})


async def send_a_gigabyte(comm: Any, _request: TrialRequest) -> None:
    await comm.stream.write(struct.pack("Q", 1 << 30))
    for _ in range(1 << 10):
        await comm.stream.write(PIECE)


async def send_a_gigabyte_in_pieces(comm: Any, _request: TrialRequest) -> None:
    for _ in range(1 << 10):
        await send(comm, {"piece": PIECE, "last": False})


async def send_no_message(comm: Any, _: TrialRequest) -> None:
    await comm.stream.write(struct.pack("QQQ", 24, 1 << 60, 8) + bytes(8))


async def say_that_it_is_a_scheduler(comm: Any, _: TrialRequest) -> None:
    await send(comm, ({"op": "event", "topic": "warn", "event": {"message": pickle.dumps(Trap())}},))


async def ask_for_what_has_no_name(comm: Any, _: TrialRequest) -> None:
    await send(comm, {"op": {}})


async def name_a_log_outside(comm: Any, request: TrialRequest) -> None:
    await done(comm, msgspec.structs.replace(trial(request), log=f"../../../../../..{FILE}"))


async def name_a_log_by_its_root(comm: Any, request: TrialRequest) -> None:
    await done(comm, msgspec.structs.replace(trial(request), log=str(FILE)))


async def answer_for_another_cell(comm: Any, request: TrialRequest) -> None:
    await done(comm, msgspec.structs.replace(trial(request), contestant="another"))


async def done(comm: Any, made: Trial) -> None:
    text = msgspec.json.encode(TrialDone(trial=made, log="words"))
    await send(comm, {"piece": text, "last": True})


def trial(request: TrialRequest) -> Trial:
    cell = request.cell
    return made_trial(request.scenario, cell.block, cell.contestant, cell.levels, {"throughput": 1000.0})


Deed = Callable[[Any, TrialRequest], Awaitable[None]]
OPENED: tuple[Deed, ...] = (
    send_pickled,
    send_serialized,
    send_a_pickle_as_bytes,
    send_an_exception,
    send_an_exception_as_bytes,
    say_that_it_is_a_scheduler,
)
ODD: tuple[Deed, ...] = (send_a_gigabyte, send_a_gigabyte_in_pieces, send_no_message, ask_for_what_has_no_name)
WRITTEN: tuple[Deed, ...] = (name_a_log_outside, name_a_log_by_its_root, answer_for_another_cell)
DEEDS = {deed.__name__: deed for deed in (*OPENED, *ODD, *WRITTEN)}


class Hostile(daemon.Worker):
    """Does its deed instead of a trial."""

    async def perform(self, comm: Any, request: bytes) -> Status:
        parsed = msgspec.json.decode(request, type=Request)
        assert isinstance(parsed, TrialRequest)
        await DEEDS[parsed.cell.contestant](comm, parsed)
        return Status.dont_reply

    async def tell_description(self) -> bytes:
        description = msgspec.json.decode(await super().tell_description(), type=Description)
        role = "server" if SAYS_IT_IS_A_SERVER in sys.argv else description.role
        return msgspec.json.encode(msgspec.structs.replace(description, role=role))


def main(folder: Path, role: Any, port: int) -> int:
    with_its_files = engine.configure_security

    def with_the_clients(folder: Path, role: Any, scheduler: str) -> RoleSecurity:
        with_its_files(folder, "client", scheduler)
        return RoleSecurity(authority.find_files(folder, "client"), Identity(role, scheduler))

    if IS_A_CLIENT in sys.argv:
        engine.configure_security = with_the_clients
    if role == "scheduler":
        return daemon.schedule(folder)
    daemon.Worker = Hostile  # type: ignore[misc]
    return daemon.join(folder, authority.read_scheduler(folder), role, None, port, (), ())


if __name__ == "__main__":
    try:
        sys.exit(main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])))
    except UserError as error:
        print(error, flush=True)
