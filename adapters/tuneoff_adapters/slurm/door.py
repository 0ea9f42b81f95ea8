"""Where the jobs' agents and workers arrive: a port of the coordinator's that lets in who knows the run's key."""

from __future__ import annotations

import contextlib
import os
import secrets
import socket
import struct
import threading
import time
from collections.abc import Callable
from multiprocessing import connection
from typing import Any

from tuneoff_adapters.hosts.host import Wire
from tuneoff_adapters.slurm.job import Way, keep_alive

Arrived = Callable[[str, int, str, Any, connection.Connection], None]  # kind, worker, job's id, what it says of itself, the way


GREETING_SECONDS = 20
AGAIN_SECONDS = 0.5


class Door:
    """Calls `arrived`, in any thread, with each connection whose other end has shown that it knows the key, and we to it."""

    def __init__(self, host: str, arrived: Arrived) -> None:
        self._arrived, self._is_closed = arrived, False
        self._listener = connection.Listener(("", 0))
        self.way = Way(host, self._listener.address[1], secrets.token_bytes(32))
        threading.Thread(target=self._accept, name="door", daemon=True).start()

    def close(self) -> None:
        self._is_closed = True
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                pipe = self._listener.accept()
            except OSError:
                if self._is_closed:
                    return
                time.sleep(AGAIN_SECONDS)  # too many files are open: strangers' are closed after a time
                continue
            threading.Thread(target=self._greet, args=(pipe,), daemon=True).start()  # a stranger may be silent

    def _greet(self, pipe: connection.Connection) -> None:
        try:
            _limit(pipe, GREETING_SECONDS)
            connection.deliver_challenge(pipe, self.way.key)
            connection.answer_challenge(pipe, self.way.key)
            kind, index, job_id, about = pipe.recv()
            _limit(pipe, 0)
            keep_alive(pipe)
        except Exception:  # a stranger may send anything
            pipe.close()
        else:
            self._arrived(kind, index, job_id, about, pipe)


class JobNode(Wire):
    """The agent in a job."""

    def __init__(self, host: str, job_id: str, pipe: connection.Connection) -> None:
        self.host, self._pipe = host, pipe
        super().__init__(f"{host} (job {job_id})", os.fdopen(os.dup(pipe.fileno()), "wb"), os.fdopen(os.dup(pipe.fileno()), "rb"))

    def problem(self) -> str:
        return f"host {self.name} is not connected any more"

    def close(self, at_once: bool = False) -> None:
        with contextlib.suppress(OSError), socket.socket(fileno=os.dup(self._pipe.fileno())) as way:
            way.shutdown(socket.SHUT_RDWR)


def _limit(pipe: connection.Connection, seconds: int) -> None:
    """Let a reading of a connection fail after some time; 0: never."""
    with socket.socket(fileno=os.dup(pipe.fileno())) as way:
        way.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("ll", seconds, 0))
