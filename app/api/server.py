"""The API alone, without the page: one socket on loopback, the guard, the API's routes.

The socket is bound before anything else starts, so a port in use is said at once.
"""

from __future__ import annotations

import asyncio
import errno
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

import uvicorn
from starlette.applications import Starlette

from ..errors import AppError
from ..services import ApiServices
from .api import api_routes

HOST = "127.0.0.1"
SHUTDOWN_S = 3  # for answers that are being sent
LOOK_S = 0.5  # between two looks at whether the device is still there


def listen(port: int) -> socket.socket:
    """A socket at `port` of this machine only; 0 takes a free one. Raises AppError."""
    taken = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        if sys.platform != "win32":  # there it would let two programs share the port
            taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        taken.bind((HOST, port))
        taken.listen(128)
    except OSError as error:
        taken.close()
        busy = error.errno in (errno.EADDRINUSE, errno.EACCES)
        reason = "another program uses it" if busy else str(error.strerror)
        raise AppError(
            f"Port {port} of {HOST} can't be used: {reason}. Choose another with --port."
        ) from error
    return taken


def serve(services: ApiServices, taken: socket.socket, ready: Callable[[], None]) -> bool:
    """Serve until a signal comes, False, or the device is lost, True: only a new process gets answers from
    it. `ready` is called once the model can answer; AppError if it never can.
    """
    app = services.guard.wrap(Starlette(routes=api_routes(services)))
    config = uvicorn.Config(app, log_config=None, access_log=False, timeout_graceful_shutdown=SHUTDOWN_S)
    return asyncio.run(_serve(services, _Server(config, services.runtime.close), taken, ready))


async def _serve(
    services: ApiServices, server: uvicorn.Server, taken: socket.socket, ready: Callable[[], None]
) -> bool:
    serving = asyncio.create_task(server.serve(sockets=[taken]))
    services.runtime.start()
    loaded = asyncio.create_task(asyncio.to_thread(services.runtime.wait))
    await asyncio.wait((serving, loaded), return_when=asyncio.FIRST_COMPLETED)
    if server.should_exit or serving.done():  # a signal was faster than the model
        await asyncio.gather(serving, loaded)
        return False
    if (status := loaded.result()).state == "ready":
        ready()
        while not (lost := services.runtime.is_lost) and not serving.done():
            await asyncio.wait((serving,), timeout=LOOK_S)
        server.should_exit = True
        await serving
        return lost
    server.should_exit = True
    await serving
    raise AppError(status.message)


class _Server(uvicorn.Server):
    """uvicorn would send the signal on once it has stopped; there is still a model to close then.

    It would also cut what is being sent: so all answers are ended when it begins to wait for them.
    """

    def __init__(self, config: uvicorn.Config, end_answers: Callable[[], None]) -> None:
        super().__init__(config)
        self._end_answers = end_answers

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        ended = asyncio.create_task(asyncio.to_thread(self._end_answers))
        await super().shutdown(sockets)
        await ended

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {number: signal.signal(number, self._stop) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _stop(self, number: int, frame: FrameType | None) -> None:
        self.should_exit = True
