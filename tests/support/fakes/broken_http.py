"""A web server that is broken: broken_http.py PORT HOW. It accepts every connection, so it is taken for ready. HOW:
"503" and "wrong-body" answer every request so; "silent" never reads one; "closes" ends every connection at once."""

import socket
import sys
import threading

PORT, HOW = int(sys.argv[1]), sys.argv[2]
REPLIES = {
    "503": b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n",
    "wrong-body": b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nwrong",
}
kept = []


def answer(connection: socket.socket) -> None:
    pending = b""
    while data := connection.recv(1 << 16):
        *requests, pending = (pending + data).split(b"\r\n\r\n")
        connection.sendall(REPLIES[HOW] * len(requests))


def serve(connection: socket.socket) -> None:
    try:
        answer(connection)
    except OSError:
        pass  # the load has left
    finally:
        connection.close()


with socket.create_server(("127.0.0.1", PORT), backlog=1024) as listener:
    while True:
        accepted, _ = listener.accept()
        if HOW == "silent":
            kept.append(accepted)
        elif HOW == "closes":
            accepted.close()
        else:
            threading.Thread(target=serve, args=(accepted,), daemon=True).start()
