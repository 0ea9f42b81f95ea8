"""Where jobs' agents and workers arrive: a port of the coordinator's that lets in who knows the run's key."""

from __future__ import annotations

import contextlib
import secrets
import selectors
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tuneoff_platforms.remote.channel import GREETING_SECONDS, Channel, Greeting, TamperedError
from tuneoff_platforms.remote.host import Wire
from tuneoff_platforms.remote.job import Endpoint

Arrived = Callable[[str, int, int, Any, Channel], None]  # kind, worker, launch, what it says of itself, the connection

STRANGERS = 32  # greetings at once, beside two of each worker; the oldest has to go for another one
WAITING = 256  # connections that the kernel keeps until they are taken, beside two of each worker; costs nothing
AGAIN_SECONDS = 0.5
_PART = 8192  # bytes of a greeting that are read at once; it has less


@dataclass(slots=True)
class _Guest:
    """Who has connected, and not yet shown the key."""

    greeting: Greeting
    until: float  # monotonic, in seconds


class CoordinatorServer:
    """Calls `arrived`, in its thread, with each connection whose other end has shown that it knows the key, and we to it.

    One thread greets all, holds few descriptors at once and each for a short time: strangers keep no job out.
    """

    def __init__(self, host: str, workers: int, arrived: Arrived, listen: str = "127.0.0.1") -> None:
        """`host`: this machine, as workers find it; `listen`: its address at which they arrive, or "" for all that it has."""
        self._arrived, self._most, self._is_closed = arrived, STRANGERS + 2 * workers, False
        self._listener = socket.create_server((listen, 0), backlog=WAITING + self._most)
        self._listener.setblocking(False)
        self.endpoint = Endpoint(host, self._listener.getsockname()[1], secrets.token_bytes(32))
        self._guests: dict[socket.socket, _Guest] = {}  # the oldest first
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._listener, selectors.EVENT_READ)
        self._thread = threading.Thread(target=self._serve, name="coordinator server", daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._is_closed = True
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)  # wakes the thread
        self._thread.join()

    def _serve(self) -> None:
        with self._selector, self._listener:
            while not self._is_closed:
                oldest = next(iter(self._guests.values()), None)
                ready = self._selector.select(None if oldest is None else max(0.0, oldest.until - time.monotonic()))
                for key, _ in ready:
                    if key.fileobj is self._listener:
                        self._let_in()
                    elif isinstance(key.fileobj, socket.socket) and key.fileobj in self._guests:  # else it had to go meanwhile
                        self._hear(key.fileobj)
                for connection in [connection for connection, guest in self._guests.items() if guest.until < time.monotonic()]:
                    self._turn_away(connection)
            for connection in list(self._guests):
                self._turn_away(connection)

    def _let_in(self) -> None:
        if len(self._guests) >= self._most:
            self._turn_away(next(iter(self._guests)))
        try:
            connection, _ = self._listener.accept()
        except BlockingIOError:
            return
        except OSError:
            if self._guests:  # too many files are open
                self._turn_away(next(iter(self._guests)))
            elif not self._is_closed:
                time.sleep(AGAIN_SECONDS)
            return
        connection.setblocking(False)
        guest = self._guests[connection] = _Guest(Greeting(self.endpoint.key), time.monotonic() + GREETING_SECONDS)
        self._selector.register(connection, selectors.EVENT_READ)
        try:
            connection.sendall(guest.greeting.nonce)
        except OSError:
            self._turn_away(connection)

    def _hear(self, connection: socket.socket) -> None:
        """Take in a part of a greeting."""
        try:
            if not (part := connection.recv(_PART)):
                raise EOFError
            greeted = self._guests[connection].greeting.take(part)
            if greeted is None:
                return
            kind, index, number, about = greeted.about
            connection.sendall(greeted.proof)
            channel = Channel(connection, greeted.sending, greeted.receiving)
        except BlockingIOError:
            return
        except (OSError, EOFError, ValueError):  # a stranger may send anything
            self._turn_away(connection)
            return
        self._selector.unregister(connection)
        del self._guests[connection]
        self._arrived(kind, index, number, about, channel)

    def _turn_away(self, connection: socket.socket) -> None:
        self._selector.unregister(connection)
        del self._guests[connection]
        connection.close()


class JobNode(Wire):
    """The agent in a job. `tampered` is called, in any thread, if what it says was changed on its way."""

    def __init__(self, host: str, launch: str, channel: Channel, tampered: Callable[[str, TamperedError], None]) -> None:
        self.host, self._channel, self._tampered = host, channel, tampered
        super().__init__(f"{host} ({launch})", channel.send_bytes, self._messages())

    def _messages(self) -> Any:
        try:
            yield from self._channel.messages()
        except TamperedError as error:
            self._tampered(self.name, error)

    def problem(self) -> str:
        return f"host {self.name} is not connected any more"

    def close(self, at_once: bool = False) -> None:
        self._channel.end()
