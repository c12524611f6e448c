"""An ordinary JSON API, as a user has one: json_api.py PORT|FILE [HOW]. HOW: "chunked" sends bodies in chunks; "varies"
bodies of any length; "fewer" has fewer items; "mute" answers nothing; "moved" redirects; "line" speaks no HTTP; "slow"
answers one request at a time, some 200 a second; "single" serves one connection at a time; "warms" has items only when
/api/health has been requested three times; "named" has them for the host localhost. CERTIFICATE and KEY in the
environment are for TLS."""

import json
import os
import random
import socket
import ssl
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, HTTPServer, ThreadingHTTPServer

PLACE, HOW = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else ""
ITEMS = [{"id": number, "name": f"item {number}", "price": 100 + number, "tags": ["a", "b"]} for number in range(30)]


class Api(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    health_requests = 0
    turn = threading.Lock()

    def handle(self) -> None:
        if HOW != "line":
            return super().handle()
        for _ in self.rfile:
            self.wfile.write(b"+OK\n")
        return None

    def do_GET(self) -> None:
        if HOW == "mute":
            threading.Event().wait()
        if HOW == "slow":
            with Api.turn:
                time.sleep(0.005)
        if HOW == "moved" and self.path != "/api/items":
            self.answer(301, "", Location="/api/items")
        elif self.path == "/api/health":
            Api.health_requests += 1
            self.answer(200 if is_warm() else 503, {"status": "ok"})
        elif not is_warm() or (HOW == "named" and not self.headers["Host"].startswith("localhost")):
            self.answer(503, {"error": "not yet"})
        elif self.path == "/api/items":
            most = random.randrange(1, 30) if HOW == "varies" else 20 if HOW == "fewer" else 30
            self.answer(200, ITEMS[:most])
        else:
            self.answer(404, {"error": "there is no such thing"})

    def do_POST(self) -> None:
        sent = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        right = self.headers.get("Authorization") == "Bearer secret"
        self.answer(201 if right else 401, {"id": 31, **sent})

    def answer(self, status: int, content: object, **headers: str) -> None:
        body = json.dumps(content).encode()
        self.send_response(status)
        framing = {"Transfer-Encoding": "chunked"} if HOW == "chunked" else {"Content-Length": str(len(body))}
        for name, value in ({"Content-Type": "application/json"} | framing | headers).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body) if HOW == "chunked" else body)

    def log_message(self, *_: object) -> None: ...


class FileServer(ThreadingHTTPServer):
    address_family = socket.AF_UNIX
    request_queue_size = 100

    def server_bind(self) -> None:
        self.socket.bind(self.server_address)

    def get_request(self) -> tuple[socket.socket, tuple[str, int]]:
        return self.socket.accept()[0], ("", 0)


def is_warm() -> bool:
    return HOW != "warms" or Api.health_requests >= 3


JsonServer = HTTPServer if HOW == "single" else ThreadingHTTPServer
server = FileServer(PLACE, Api) if "/" in PLACE else JsonServer(("127.0.0.1", int(PLACE)), Api)  # type: ignore[arg-type]
if "CERTIFICATE" in os.environ:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(os.environ["CERTIFICATE"], os.environ["KEY"])
    server.socket = context.wrap_socket(server.socket, server_side=True)
server.serve_forever()
