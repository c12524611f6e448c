"""A small server that obeys the program contract, or breaks it in the way FAKE_SERVER names. It echoes bytes, over TCP
or, where --listen says so, over UDP to clients that said hello (protocol/WIRE.md); "lossy" drops one in three. It
is started some thousand times: to load json, and the Python halves of signal and socket would be most of its CPU
time."""

import _signal as signal  # type: ignore[import-not-found]
import _socket as socket
import _thread
import os
import select
import sys
import time

MODE = os.environ.get("FAKE_SERVER", "good")
COMPILES = 40
"""How many messages a "jit" has compiled after: each costs a tenth less than the last, so that no slice looks settled
however few messages a busy machine leaves in it. In one that "compiles_on" each costs a tenth more than the last."""
MESSAGE_S = 0.0005
"""The work for a message of a server that has some: itself or "detached", or which "defers" it."""
DETACHED = {"serves_as_orphan": False, "serves_as_sibling": True}
BURNERS = {"burns_in_orphan": False, "burns_in_sibling": True}
"""Whether the process that is detached is another child of its parent's parent."""
CODE = None
if MODE in ("jit", "compiles_on"):
    import mmap

    CODE = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_EXEC)
totals = {"requests": 0, "bytes_in": 0, "bytes_out": 0, "connections": 0, "protocol_errors": 0}


def read_listen_host() -> str:
    """The address that --listen names."""
    where = sys.argv[2] if sys.argv[1:2] == ["--listen"] else "tcp://127.0.0.1:0"
    return where.partition("://")[2].rpartition(":")[0]


def json_of(fields: object) -> str:
    """Its text, of true, numbers and strings without quotes."""
    return str(fields).replace("'", '"').replace("True", "true")


def bound(address: tuple[str, int]) -> socket.socket:
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(address)
    listener.listen(128)
    return listener


def listen() -> socket.socket:
    if MODE == "port_in_use":
        taken = bound(("127.0.0.1", 0))
        try:
            return bound(taken.getsockname())
        except OSError as error:
            sys.exit(f"cannot listen on {taken.getsockname()[1]}: {error.strerror}")
    if MODE == "dies_at_start":
        sys.exit(3)
    return bound((read_listen_host(), 0))


def write_for_ever(fd: int, what: bytes = b"x" * 65536, pause_s: float = 0.0) -> None:
    while True:
        os.write(fd, what)
        time.sleep(pause_s)


def leave_behind(*, of_somebody: bool) -> None:
    """A process in a session of its own: a child of this one, or of one that has ended."""
    if os.fork() == 0:
        os.setsid()
        if of_somebody or os.fork() == 0:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            time.sleep(1000)
        os._exit(0)


def detach(*, beside_this: bool) -> int:
    """Go on as a process in a session of its own: as an orphan, or as another child of this one's parent
    (CLONE_PARENT). Returns 0 there, and here its process."""
    reading, writing = os.pipe()
    if beside_this:
        import ctypes

        first = ctypes.CDLL(None).syscall(56, 0x8000 | signal.SIGCHLD, 0, 0, 0, 0)
    else:
        first = os.fork()
    if first:
        if not beside_this:
            os.waitpid(first, 0)
        return int(os.read(reading, 20))
    os.setsid()
    if not beside_this and os.fork():
        os._exit(0)
    os.write(writing, str(os.getpid()).encode())
    return 0


def wait_for(server: int) -> None:
    """Only wait, until SIGTERM ends the process that serves, too."""

    def pass_on(*_: object) -> None:
        os.kill(server, signal.SIGTERM)

    signal.signal(signal.SIGTERM, pass_on)
    ended = select.poll()
    ended.register(os.pidfd_open(server), select.POLLIN)
    ended.poll()
    os._exit(0)


def announce(listener: socket.socket) -> None:
    if MODE == "endless_ready":
        write_for_ever(1)
    if MODE == "drips":
        write_for_ever(1, b"x", 0.001)
    if MODE == "floods":
        write_for_ever(2)
    if MODE == "nested_ready":
        os.write(1, b'{"ready": true, "and": ' + 5000 * b"[" + 5000 * b"]" + b"}\n")
    if MODE == "leaves_children":
        leave_behind(of_somebody=True)
        leave_behind(of_somebody=False)
    if MODE == "never_ready":
        signal.pause()
    if MODE == "babbles":
        os.write(1, b"Listening, I think\n")
    pid = 1 if MODE == "is_somebody_else" else os.getpid()
    port = listener.getsockname()[1]
    endpoints = {
        "names_no_endpoint": "--help",
        "names_another_host": f"tcp://192.0.2.1:{port}",
        "names_all_addresses": f"tcp://0.0.0.0:{port}",
    }
    endpoint = endpoints.get(MODE, f"tcp://{read_listen_host()}:{port}")
    ready = {"ready": True, "endpoint": endpoint, "pid": pid}
    os.write(1, json_of(ready).encode() + b"\n")  # not print: a signal may come while it writes


def end(*_: object) -> None:
    if MODE == "crashes_at_end":
        os.kill(os.getpid(), signal.SIGSEGV)
    if MODE == "endless_totals":
        write_for_ever(1)
    if MODE == "drips_totals":
        write_for_ever(1, b"x", 0.001)
    if MODE == "nested_totals":
        os.write(1, 5000 * b'{"a":' + b"1" + 5000 * b"}" + b"\n")
    if MODE == "miscounts":
        totals["bytes_in"] += 1
    printed = totals | {"connections_per_thread": [totals["connections"], 0]}
    os.write(1, json_of(printed).encode() + b"\n")
    os._exit(0)


def work(number: int) -> None:
    """Half a millisecond for each message, and more while something compiles: by its number, for a busy machine
    stretches time."""
    more = 1.1 ** (number if MODE == "compiles_on" else max(0, COMPILES - number))
    until_s = time.thread_time() + 0.0005 * more
    while time.thread_time() < until_s:
        pass


def burn(seconds: float) -> None:
    until_s = time.thread_time() + seconds
    while time.thread_time() < until_s:
        pass


def never_rest() -> None:
    """Use most of a core, with or without requests."""
    while True:
        until_s = time.thread_time() + 0.002
        while time.thread_time() < until_s:
            pass
        time.sleep(0.0005)


def serve(listener: socket.socket) -> None:
    selector = select.epoll()
    selector.register(listener.fileno(), select.EPOLLIN)
    connections: dict[int, socket.socket] = {}
    pending_s = 0.0
    while True:
        ready = selector.poll(0.06 if pending_s else -1)
        if not ready:  # nothing came for a while: this is a slice of others
            burn(pending_s)
            pending_s = 0.0
        for fd, _ in ready:
            if fd == listener.fileno():
                accepted, _ = listener._accept()  # type: ignore[attr-defined]
                connections[accepted] = socket.socket(fileno=accepted)
                totals["connections"] += 1
                selector.register(accepted, select.EPOLLIN)
                continue
            connection = connections[fd]
            data = connection.recv(65536)
            if not data:
                selector.unregister(fd)
                connections.pop(fd).close()
                continue
            if MODE == "dies_under_load":
                print("out of luck", file=sys.stderr, flush=True)
                os.kill(os.getpid(), signal.SIGKILL)
            if MODE == "ends_by_realtime_signal":
                os.kill(os.getpid(), signal.SIGRTMIN + 6)
            if MODE == "floods_under_load" and not totals["requests"]:
                _thread.start_new_thread(write_for_ever, (2,))
            if CODE is not None:
                work(totals["requests"])
            if MODE in ("works", *DETACHED):
                burn(MESSAGE_S)
            if MODE == "defers":
                pending_s += MESSAGE_S
            totals["requests"] += 1
            totals["bytes_in"] += len(data)
            if MODE == "asks_more":
                os.getppid()
            totals["bytes_out"] += len(data)  # before it is out: the signal to end may come right after
            connection.sendall(data)


def serve_datagrams() -> None:
    """A hello of 16 bytes gets its welcome; what a client that is known says comes back."""
    server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    server.bind((read_listen_host(), 0))
    ready = {"ready": True, "endpoint": f"udp://{read_listen_host()}:{server.getsockname()[1]}", "pid": os.getpid()}
    os.write(1, json_of(ready).encode() + b"\n")
    known: set[object] = set()
    while True:
        data, peer = server.recvfrom(65536)
        if data[:8] == b"\0\0\0\0HELO":
            totals["connections"] += peer not in known
            known.add(peer)
            server.sendto(data[:4] + b"WELC" + data[8:], peer)
        elif peer in known:
            totals["requests"] += 1
            totals["bytes_in"] += len(data)
            if MODE != "lossy" or totals["requests"] % 3:
                totals["bytes_out"] += len(data)
                server.sendto(data, peer)


signal.signal(signal.SIGTERM, signal.SIG_IGN if MODE == "ignores_sigterm" else end)
if sys.argv[1:2] == ["--listen"] and sys.argv[2].startswith("udp://"):
    serve_datagrams()
the_listener = listen()
if MODE == "never_rests":
    _thread.start_new_thread(never_rest, ())
if MODE in BURNERS and not detach(beside_this=BURNERS[MODE]):
    never_rest()
if MODE == "visited":
    visitor = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    visitor.connect(the_listener.getsockname())
    visitor.close()
announce(the_listener)
if MODE in DETACHED and (serving := detach(beside_this=DETACHED[MODE])):
    wait_for(serving)
serve(the_listener)
