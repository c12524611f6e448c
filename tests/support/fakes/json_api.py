"""An ordinary JSON API, as a user has one: json_api.py PORT [HOW]. HOW: "chunked" sends bodies in chunks; "varies"
bodies of any length; "mute" answers nothing; "moved" redirects; "line" speaks no HTTP."""

import json
import random
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

PORT, HOW = int(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else ""
ITEMS = [{"id": number, "name": f"item {number}", "price": 100 + number, "tags": ["a", "b"]} for number in range(30)]


class Api(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def handle(self) -> None:
        if HOW != "line":
            return super().handle()
        for _ in self.rfile:
            self.wfile.write(b"+OK\n")
        return None

    def do_GET(self) -> None:
        if HOW == "mute":
            threading.Event().wait()
        if HOW == "moved" and self.path != "/api/items":
            self.answer(301, "", Location="/api/items")
        elif self.path == "/api/items":
            self.answer(200, ITEMS[: random.randrange(1, 30)] if HOW == "varies" else ITEMS)
        elif self.path == "/api/health":
            self.answer(200, {"status": "ok"})
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


ThreadingHTTPServer(("127.0.0.1", PORT), Api).serve_forever()
