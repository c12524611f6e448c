"""The workload web by FastAPI: a coroutine for each request, on uvicorn's event loop."""

import asyncio
import time
from collections.abc import AsyncIterator

from fastapi import FastAPI, Request, Response
from fastapi.responses import StreamingResponse

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


async def stream(stamp: str, chunks: int, every_s: float, size: int) -> AsyncIterator[str]:
    """Send each chunk when it is due, by a schedule that begins with the request."""
    begin = time.monotonic()
    for number in range(chunks):
        while (left_s := begin + number * every_s - time.monotonic()) > 0:
            await asyncio.sleep(left_s)
        yield f"data: {f'{stamp}{number:04}'.ljust(size, 'x')}\n\n"


@app.get("/{stamp}")
async def answer(
    stamp: str, wait: str = "0us", cpu: str = "0us", size: int = 0, chunks: int = 0, every: str = "0us"
) -> Response:
    if chunks:
        return StreamingResponse(stream(stamp, chunks, int(every[:-2]) / 1e6, size), media_type="text/event-stream")
    if (microseconds := int(wait[:-2])) > 0:
        await asyncio.sleep(microseconds / 1e6)
    burn(int(cpu[:-2]))
    return Response(stamp.ljust(size, "x"), media_type="text/plain")
