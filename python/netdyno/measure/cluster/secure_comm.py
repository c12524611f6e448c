"""The connections of a cluster: Dask's over TLS, with messages of plain data, and with peers bound to their role.

Dask opens pickles in many places: results, exceptions, warnings, types, plugins. A pickle runs any code of its writer.
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

from netdyno.kit.url import parse_tls_url
from netdyno.measure.cluster import authority
from netdyno.measure.cluster.authority import Files, Role

GREETING_S = 10.0
"""Seconds that an unknown peer may take until its certificate is known and it has sent a first message."""
_COMMON_OPERATIONS = frozenset({"close"})
_HOST_OPERATIONS = frozenset(
    {"register-worker", "heartbeat_worker", "unregister", "keep-alive", "worker-status-change", "close-stream"}
)
_SCHEDULER_OPERATIONS = frozenset({"close-stream", "remove-worker", "worker-status-change"})
_CONTROLLER_OPERATIONS = frozenset(
    {"netdyno_clock", "netdyno_describe", "netdyno_perform", "netdyno_rate", "netdyno_round_trip"}
)
_PEER_OPERATIONS = frozenset({"netdyno_clock", "netdyno_fill"})
OPERATIONS: dict[Role, dict[Role, frozenset[str]]] = {
    "scheduler": {"control": frozenset({"identity"}), "server": _HOST_OPERATIONS, "client": _HOST_OPERATIONS},
    "server": {
        "control": _CONTROLLER_OPERATIONS,
        "scheduler": _SCHEDULER_OPERATIONS,
        "server": _PEER_OPERATIONS,
        "client": _PEER_OPERATIONS,
    },
    "client": {
        "control": _CONTROLLER_OPERATIONS,
        "scheduler": _SCHEDULER_OPERATIONS,
        "server": _PEER_OPERATIONS | {"netdyno_load"},
        "client": _PEER_OPERATIONS,
    },
    "control": {"scheduler": frozenset(), "server": frozenset(), "client": frozenset()},
}
"""The operations that a process of a role performs at the request of another role; from roles not named it accepts
none."""
MOST_BYTES: dict[Role, int] = {"scheduler": 1 << 20, "control": 4 << 20, "server": 130 << 20, "client": 130 << 20}
"""The most bytes of a message that a role accepts: hosts send each other whole results of a load."""
MOST_FRAMES = 64
_SIZE = struct.Struct("Q")


class Identity(NamedTuple):
    """The identity of this process: its role, and the address of the scheduler."""

    role: Role
    scheduler: str


class Comm(TLS):  # type: ignore[misc]
    """A connection; `role` is that of the peer's certificate, None where it has none."""

    def __init__(self, stream: Any, local_addr: str, peer_addr: str, deserialize: bool = True) -> None:
        del deserialize  # Dask's word for opening pickles
        super().__init__(stream, local_addr, peer_addr, deserialize=False)
        self.role = authority.read_role(self._extra.get("peercert") or {})
        self._operations: frozenset[str] = frozenset()
        self._most_bytes = 1 << 10
        self._is_greeted = False

    def accept_peer(self, own_role: Role, expected: frozenset[Role]) -> None:
        """Accept messages of the peer from now on. Raises FatalCommClosedError where it has another role."""
        if self.role is None or self.role not in expected or self.role not in OPERATIONS[own_role]:
            self.abort()
            raise FatalCommClosedError(f"{self._peer_addr} has a certificate for {self.role or 'no role'}")
        self._operations = _COMMON_OPERATIONS | OPERATIONS[own_role][self.role]
        self._most_bytes = MOST_BYTES[own_role]

    async def read(self, deserializers: object = None) -> Any:
        """Read a message. Raises CommClosedError, also where this peer may not send the message; then the connection
        ends."""
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
        """Agree on nothing with the peer: what Dask would agree on is not used here."""
        del local, remote
        return {"compression": None, "pickle-protocol": pickle.HIGHEST_PROTOCOL}


def _decode(text: bytes) -> Any:
    """Decode the plain data of a message, with None for what Dask would unpickle. Raises CommClosedError."""
    try:
        if _SIZE.unpack_from(text)[0] > MOST_FRAMES:
            raise ValueError("too many frames")
        frames, missing = unpack_frames(text, partial=True)
        if missing:
            raise ValueError("frames are missing")
        # msgpack's own limits, which follow from the text's length; Dask sets none.
        return msgpack.unpackb(frames[0], object_hook=_keep_plain, use_list=False, strict_map_key=False)
    except Exception as error:  # whatever the error, the peer's message cannot be read
        raise CommClosedError(f"a message cannot be read: {error!r:.200}") from error


def _keep_plain(mapping: dict[Any, Any]) -> Any:
    if "__Set__" in mapping:
        return set(mapping["as-list"])
    return None if mapping.keys() & {"__Serialized__", "__Pickled__", "__Enum__"} else mapping


class Connector(TLSConnector):  # type: ignore[misc]
    """A connector to a scheduler and to hosts alone."""

    comm_class = Comm

    async def connect(self, address: str, deserialize: bool = True, **options: Any) -> Comm:
        identity: Identity = options["identity"]
        comm: Comm = await super().connect(address, deserialize=deserialize, **options)
        is_scheduler = parse_tls_url(f"tls://{address}") == parse_tls_url(identity.scheduler)
        comm.accept_peer(identity.role, frozenset({"scheduler"}) if is_scheduler else frozenset({"server", "client"}))
        return comm


class Listener(TLSListener):  # type: ignore[misc]
    """A listener that admits peers with a role that may request something, and drops those that are not known in
    time."""

    comm_class = Comm

    def __init__(self, *arguments: Any, identity: Identity, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._role = identity.role

    async def _handle_stream(self, stream: Any, address: Any) -> None:
        try:
            async with asyncio.timeout(GREETING_S):
                await super()._handle_stream(stream, address)
        except TimeoutError:
            stream.close()

    async def on_connection(self, comm: Comm, handshake_overrides: dict[str, Any] | None = None) -> None:
        comm.accept_peer(self._role, frozenset(OPERATIONS[self._role]))
        await super().on_connection(comm, handshake_overrides)


class _Backend(TLSBackend):  # type: ignore[misc]
    _connector_class = Connector
    _listener_class = Listener


class RoleSecurity(Security):  # type: ignore[misc]
    """Mutual TLS by the certificate of a role."""

    def __init__(self, files: Files, identity: Identity) -> None:
        # Dask distinguishes the parts that a process plays; it has one certificate for all.
        paths = {
            f"tls_{side}_{part}": str(path)
            for side in ("scheduler", "worker", "client")
            for part, path in (("cert", files.certificate), ("key", files.key))
        }
        super().__init__(tls_ca_file=str(files.authority), require_encryption=True, **paths)
        self.identity = identity

    def get_connection_args(self, role: str) -> dict[str, Any]:
        return {**super().get_connection_args(role), "identity": self.identity}

    def get_listen_args(self, role: str) -> dict[str, Any]:
        return {**super().get_listen_args(role), "identity": self.identity}


class PickleRefusedError(Exception):
    """A peer has sent a pickle to be opened."""


class _PickleWithoutLoads:
    """Python's pickle module for Dask, which may write pickles and open none."""

    def __getattr__(self, name: str) -> Any:
        return getattr(pickle, name)

    @staticmethod
    def loads(*_: object, **__: object) -> NoReturn:
        raise PickleRefusedError("no process of a cluster opens a pickle")


def install() -> None:
    """Replace, from now on, all TLS connections of Dask's in this process by those above, and let it open no pickle."""
    registry.backends["tls"] = _Backend()
    refuse_pickles()


def refuse_pickles() -> None:
    """Replace the name through which Dask opens every pickle that is not its own."""
    dask_pickle.pickle = _PickleWithoutLoads()
