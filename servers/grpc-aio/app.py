"""The workload grpc by grpcio's asyncio API: a process with an event loop for each core, all on one port."""

import asyncio
import signal
import sys
import time
from multiprocessing import Process
from pathlib import Path

import grpc

address, threads, certificate, protos = sys.argv[1:]
sys.path.insert(0, protos)
messages, services = grpc.protos_and_services("grpc.proto")


def burn(microseconds: int) -> None:
    """Keep the thread busy, by its CPU clock."""
    end = time.thread_time_ns() + 1000 * microseconds
    while time.thread_time_ns() < end:
        pass


class Work(services.WorkServicer):
    async def Answer(self, request, context):  # noqa: N802 - by its name in the service
        if request.wait_us > 0:
            await asyncio.sleep(request.wait_us / 1e6)
        burn(request.cpu_us)
        return messages.Reply(body=request.stamp.ljust(request.size, b"x"))


async def serve() -> None:
    server = grpc.aio.server()
    services.add_WorkServicer_to_server(Work(), server)
    if certificate:
        pem = Path(certificate).read_bytes()
        server.add_secure_port(address, grpc.ssl_server_credentials([(pem, pem)]))
    else:
        server.add_insecure_port(address)
    await server.start()
    await server.wait_for_termination()


if __name__ == "__main__":
    workers = [Process(target=lambda: asyncio.run(serve()), daemon=True) for _ in range(int(threads))]
    for worker in workers:
        worker.start()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())
    for worker in workers:
        worker.join()
