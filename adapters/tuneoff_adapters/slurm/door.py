"""Where the jobs' agents and workers arrive: a port of the coordinator's that lets in who knows the run's key."""

from __future__ import annotations

import contextlib
import os
import secrets
import socket
import threading
from collections.abc import Callable
from multiprocessing import AuthenticationError, connection
from typing import Any

from tuneoff_adapters.hosts.host import Wire
from tuneoff_adapters.slurm.job import Way

Arrived = Callable[[str, int, str, Any, connection.Connection], None]  # kind, worker, job's id, what it says of itself, the way


class Door:
    """Calls `arrived`, in any thread, with each connection whose other end has shown that it knows the key, and we to it."""

    def __init__(self, host: str, arrived: Arrived) -> None:
        self._arrived = arrived
        self._listener = connection.Listener(("", 0))
        self.way = Way(host, self._listener.address[1], secrets.token_bytes(32))
        threading.Thread(target=self._accept, name="door", daemon=True).start()

    def close(self) -> None:
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                pipe = self._listener.accept()
            except OSError:
                return  # it is closed
            threading.Thread(target=self._greet, args=(pipe,), daemon=True).start()  # a stranger may be silent for ever

    def _greet(self, pipe: connection.Connection) -> None:
        try:
            connection.deliver_challenge(pipe, self.way.key)
            connection.answer_challenge(pipe, self.way.key)
            kind, index, job_id, about = pipe.recv()
        except (OSError, EOFError, AuthenticationError):
            pipe.close()
        else:
            self._arrived(kind, index, job_id, about, pipe)


class JobNode(Wire):
    """The agent in a job."""

    def __init__(self, name: str, pipe: connection.Connection) -> None:
        self._pipe = pipe
        super().__init__(name, os.fdopen(os.dup(pipe.fileno()), "wb"), os.fdopen(os.dup(pipe.fileno()), "rb"))

    def problem(self) -> str:
        return f"host {self.name} is not connected any more"

    def close(self, at_once: bool = False) -> None:
        with contextlib.suppress(OSError), socket.socket(fileno=os.dup(self._pipe.fileno())) as way:
            way.shutdown(socket.SHUT_RDWR)
