"""The connections of a cluster: Dask's over TLS, whose messages are plain data, and whose peers are held to their role.

Dask opens pickles in many places: results, exceptions, warnings, types, plugins. A pickle runs what its writer likes.
Nothing here sends one, so none is opened: not in a message (`Comm.read`), and not by Dask afterwards
(`refuse_pickles`). docs/adr/dask.md says what remains."""

from __future__ import annotations

import asyncio
import pickle
import struct
from typing import Any, NamedTuple, NoReturn

import msgpack
from distributed import Security
from distributed.comm import registry
from distributed.comm.core import CommClosedError, FatalCommClosedError
from distributed.comm.tcp import TLS, TLSBackend, TLSConnector, TLSListener, convert_stream_closed_error
from distributed.protocol import pickle as dask_pickle
from distributed.protocol.utils import unpack_frames
from tornado.iostream import StreamClosedError

from netdyno.base.url import parse_tls_url
from netdyno.cluster import authority
from netdyno.cluster.authority import Files, Role

GREETING_S = 10.0
"""How long a stranger may take until its certificate is known and it has sent a first message."""
_FOR_EVERYBODY = frozenset({"close"})
_OF_HOST = frozenset(
    {"register-worker", "heartbeat_worker", "unregister", "keep-alive", "worker-status-change", "close-stream"}
)
_OF_SCHEDULER = frozenset({"close-stream", "remove-worker", "worker-status-change"})
_OF_CONTROLLER = frozenset(
    {"netdyno_clock", "netdyno_describe", "netdyno_perform", "netdyno_rate", "netdyno_round_trip"}
)
_BETWEEN_HOSTS = frozenset({"netdyno_clock", "netdyno_fill"})
OPERATIONS: dict[Role, dict[Role, frozenset[str]]] = {
    "scheduler": {"control": frozenset({"identity"}), "server": _OF_HOST, "client": _OF_HOST},
    "server": {
        "control": _OF_CONTROLLER,
        "scheduler": _OF_SCHEDULER,
        "server": _BETWEEN_HOSTS,
        "client": _BETWEEN_HOSTS,
    },
    "client": {
        "control": _OF_CONTROLLER,
        "scheduler": _OF_SCHEDULER,
        "server": _BETWEEN_HOSTS | {"netdyno_load"},
        "client": _BETWEEN_HOSTS,
    },
    "control": {"scheduler": frozenset(), "server": frozenset(), "client": frozenset()},
}
"""What a process of a role does when one of another asks for it; from a role that is not named it takes nothing."""
MOST_BYTES: dict[Role, int] = {"scheduler": 1 << 20, "control": 4 << 20, "server": 130 << 20, "client": 130 << 20}
"""Of one message that a role takes: hosts hand each other whole results of a load."""
MOST_FRAMES = 64
_SIZE = struct.Struct("Q")


class Identity(NamedTuple):
    """Of this process: its role, and where the scheduler is."""

    role: Role
    scheduler: str


class Comm(TLS):  # type: ignore[misc]
    """A connection; `role` is that of the peer's certificate, None where it has none."""

    def __init__(self, stream: Any, local_addr: str, peer_addr: str, deserialize: bool = True) -> None:
        del deserialize  # Dask's word for opening pickles
        super().__init__(stream, local_addr, peer_addr, deserialize=False)
        self.role = authority.role_of(self._extra.get("peercert") or {})
        self._operations: frozenset[str] = frozenset()
        self._most_bytes = 1 << 10
        self._is_greeted = False

    def admit(self, own: Role, expected: frozenset[Role]) -> None:
        """Take messages of the peer from now on. Raises FatalCommClosedError where it has another role."""
        if self.role is None or self.role not in expected or self.role not in OPERATIONS[own]:
            self.abort()
            raise FatalCommClosedError(f"{self._peer_addr} has a certificate for {self.role or 'no role'}")
        self._operations = _FOR_EVERYBODY | OPERATIONS[own][self.role]
        self._most_bytes = MOST_BYTES[own]

    async def read(self, deserializers: object = None) -> Any:
        """Raises CommClosedError, also where the message is none that this peer may send; then the connection ends."""
        del deserializers
        if self.stream is None:
            raise CommClosedError
        try:
            (size,) = _SIZE.unpack(await self.stream.read_bytes(_SIZE.size))
            if size > self._most_bytes:
                raise CommClosedError(f"{self._peer_addr} sends a message of {size} bytes")
            message = _decode(await self.stream.read_bytes(size))
            self._check(message)
        except (StreamClosedError, OSError) as error:
            self.abort()
            if isinstance(error, StreamClosedError) and error.real_error is None:
                raise CommClosedError("it closed the connection") from error
            if not isinstance(error, CommClosedError):
                convert_stream_closed_error(self, error)
            raise
        except BaseException:
            self.abort()
            raise
        return message

    def _check(self, message: object) -> None:
        if not self._is_greeted:
            if not isinstance(message, dict):
                raise CommClosedError(f"{self._peer_addr} does not identify itself")
            self._is_greeted = True
        for part in message if isinstance(message, tuple) else (message,):
            operation = part.get("op") if isinstance(part, dict) else None
            if operation is not None and (type(operation) is not str or operation not in self._operations):
                raise CommClosedError(f"{self._peer_addr}, as {self.role}, may not ask for {operation!r:.80}")

    @staticmethod
    def handshake_configuration(local: dict[str, Any], remote: dict[str, Any]) -> dict[str, Any]:
        """Of what Dask would agree on, nothing is used here."""
        del local, remote
        return {"compression": None, "pickle-protocol": pickle.HIGHEST_PROTOCOL}


def _decode(text: bytes) -> Any:
    """The plain data of a message; what Dask would open stands there as None. Raises CommClosedError."""
    try:
        if _SIZE.unpack_from(text)[0] > MOST_FRAMES:
            raise ValueError("too many frames")
        frames, missing = unpack_frames(text, partial=True)
        if missing:
            raise ValueError("frames are missing")
        # The limits of msgpack's own, which are those of the text, and not Dask's, which has none.
        return msgpack.unpackb(frames[0], object_hook=_plain, use_list=False, strict_map_key=False)
    except Exception as error:  # whatever it is, the peer has sent what cannot be read
        raise CommClosedError(f"a message cannot be read: {error!r:.200}") from error


def _plain(found: dict[Any, Any]) -> Any:
    if "__Set__" in found:
        return set(found["as-list"])
    return None if found.keys() & {"__Serialized__", "__Pickled__", "__Enum__"} else found


class Connector(TLSConnector):  # type: ignore[misc]
    """Connects to a scheduler, and to hosts, and to nobody else."""

    comm_class = Comm

    async def connect(self, address: str, deserialize: bool = True, **named: Any) -> Comm:
        own: Identity = named["identity"]
        comm: Comm = await super().connect(address, deserialize=deserialize, **named)
        at_scheduler = parse_tls_url(f"tls://{address}") == parse_tls_url(own.scheduler)
        comm.admit(own.role, frozenset({"scheduler"}) if at_scheduler else frozenset({"server", "client"}))
        return comm


class Listener(TLSListener):  # type: ignore[misc]
    """Lets in whoever has a role that may ask for something, and drops who does not say so in time."""

    comm_class = Comm

    def __init__(self, *arguments: Any, identity: Identity, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._role = identity.role

    async def _handle_stream(self, stream: Any, address: Any) -> None:
        try:
            async with asyncio.timeout(GREETING_S):
                await super()._handle_stream(stream, address)
        except TimeoutError:
            stream.close()

    async def on_connection(self, comm: Comm, handshake_overrides: dict[str, Any] | None = None) -> None:
        comm.admit(self._role, frozenset(OPERATIONS[self._role]))
        await super().on_connection(comm, handshake_overrides)


class _Backend(TLSBackend):  # type: ignore[misc]
    _connector_class = Connector
    _listener_class = Listener


class RoleSecurity(Security):  # type: ignore[misc]
    """Mutual TLS by the certificate of a role."""

    def __init__(self, files: Files, identity: Identity) -> None:
        # Dask tells apart as what a process speaks; it has one certificate.
        each = {
            f"tls_{side}_{part}": str(path)
            for side in ("scheduler", "worker", "client")
            for part, path in (("cert", files.certificate), ("key", files.key))
        }
        super().__init__(tls_ca_file=str(files.authority), require_encryption=True, **each)
        self.identity = identity

    def get_connection_args(self, role: str) -> dict[str, Any]:
        return {**super().get_connection_args(role), "identity": self.identity}

    def get_listen_args(self, role: str) -> dict[str, Any]:
        return {**super().get_listen_args(role), "identity": self.identity}


class PickleRefusedError(Exception):
    """Somebody has sent a pickle to be opened."""


class _PickleWithoutLoads:
    """Python's module for Dask's, which may write pickles and open none."""

    def __getattr__(self, name: str) -> Any:
        return getattr(pickle, name)

    @staticmethod
    def loads(*_: object, **__: object) -> NoReturn:
        raise PickleRefusedError("no process of a cluster opens a pickle")


def install() -> None:
    """From now on, all TLS connections of Dask's in this process are those above, and it opens no pickle."""
    registry.backends["tls"] = _Backend()
    refuse_pickles()


def refuse_pickles() -> None:
    """All ways of Dask's to open one that is not its own lead through this name."""
    dask_pickle.pickle = _PickleWithoutLoads()
