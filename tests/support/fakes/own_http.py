"""A web server that knows nothing of netdyno: own_http.py PORT [HOW]. HOW: "forks" answers in a child; "ends" ends at
its first request; "sleeps" never listens; "leaves" ends at once; "ipv6" listens at ::1 only; "closes" and
"drops" end a connection after 20 replies, announced or not."""

import os
import signal
import socket
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

PORT, HOW = int(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else ""


class HttpEcho(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        if HOW == "ends":
            os._exit(3)
        body = self.path.encode()
        self.replies = getattr(self, "replies", 0) + 1
        self.close_connection = HOW in ("closes", "drops") and self.replies == 20
        last = "Connection: close\r\n" if self.close_connection and HOW == "closes" else ""
        head = f"HTTP/1.1 200 OK\r\n{last}Content-Length: {len(body)}\r\n\r\n"
        self.wfile.write(head.encode() + body)

    def log_message(self, *_: object) -> None: ...


if HOW == "sleeps":
    signal.pause()
if HOW == "leaves":
    sys.exit("I am not configured")
if HOW == "ipv6":
    ThreadingHTTPServer.address_family = socket.AF_INET6
server = ThreadingHTTPServer(("::1" if HOW == "ipv6" else "127.0.0.1", PORT), HttpEcho)
if HOW == "forks":
    time.sleep(0.02)  # it accepts before it forks
if HOW == "forks" and os.fork() != 0:
    server.socket.close()
    os.wait()
server.serve_forever()
