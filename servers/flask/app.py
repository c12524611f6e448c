"""The workload web by Flask: a thread of gunicorn's for each connection."""

import time

from flask import Flask, Response, jsonify, request

app = Flask(__name__)
ITEMS = [{"id": 1, "name": "one"}, {"id": 2, "name": "two"}, {"id": 3, "name": "three"}]


def burn(microseconds: int) -> None:
    """Keep the thread busy, by its CPU clock."""
    end = time.thread_time_ns() + 1000 * microseconds
    while time.thread_time_ns() < end:
        pass


@app.get("/items")
def list_items() -> Response:
    return jsonify(ITEMS)


@app.post("/items")
def count_bytes() -> Response:
    return jsonify(len(request.get_data()))


@app.get("/<stamp>")
def answer(stamp: str) -> Response:
    if (microseconds := int(request.args.get("wait", "0us")[:-2])) > 0:
        time.sleep(microseconds / 1e6)
    burn(int(request.args.get("cpu", "0us")[:-2]))
    return Response(stamp.ljust(int(request.args.get("size", 0)), "x"), mimetype="text/plain")
