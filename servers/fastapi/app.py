"""The workload web by FastAPI: a coroutine for each request, on uvicorn's event loop."""

import asyncio
import time

from fastapi import FastAPI, Request, Response

app = FastAPI()
ITEMS = [{"id": 1, "name": "one"}, {"id": 2, "name": "two"}, {"id": 3, "name": "three"}]


def burn(microseconds: int) -> None:
    """Keep the thread busy, by its CPU clock."""
    end = time.thread_time_ns() + 1000 * microseconds
    while time.thread_time_ns() < end:
        pass


@app.get("/items")
async def list_items() -> list[dict[str, int | str]]:
    return ITEMS


@app.post("/items")
async def count_bytes(request: Request) -> int:
    return len(await request.body())


@app.get("/{stamp}")
async def answer(stamp: str, wait: str = "0us", cpu: str = "0us", size: int = 0) -> Response:
    if (microseconds := int(wait[:-2])) > 0:
        await asyncio.sleep(microseconds / 1e6)
    burn(int(cpu[:-2]))
    return Response(stamp.ljust(size, "x"), media_type="text/plain")
