"""A connection between a run's coordinator and one of its jobs, on which each message is authenticated by the run's key.

Greeting: the coordinator sends 32 random bytes; the job answers with 32 of its own, with what it says of itself (JSON), and with
the HMAC of all three; the coordinator answers with an HMAC of the same. From them and the key each direction derives a key of its
own. Then a message is a header (its kind and length) and a body, each with the HMAC of itself and of the message's number: what
was changed, left out, repeated, reordered, or comes from another connection or direction is refused before it is unpickled.
Nothing is encrypted.
"""

from __future__ import annotations

import contextlib
import hmac
import json
import os
import pickle
import select
import socket
import struct
import threading
from collections.abc import Iterator
from typing import Any, NamedTuple

NONCE_BYTES = TAG_BYTES = 32  # HMAC-SHA256
GREETING_SECONDS = 10.0  # for the whole greeting
REST_SECONDS = 60  # for each further part of a message that has begun
MOST_ABOUT_BYTES = 4096  # of what a job says of itself
_LENGTH, _HEADER, _NUMBER = struct.Struct(">H"), struct.Struct(">BQ"), struct.Struct(">Q")
_MESSAGE, _REFUSAL = 0, 1  # kinds: its sender has refused what came


class TamperedError(ConnectionError):
    """What arrived is not what the other end sent; the connection cannot be used any more."""


class Channel:
    """One end of a connection after its greeting. Any thread may send, one may receive."""

    def __init__(self, connection: socket.socket, sending: bytes, receiving: bytes) -> None:
        self._socket, self._sending, self._receiving = connection, sending, receiving
        self._sent = self._received = 0
        self._lock = threading.Lock()
        connection.settimeout(None)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("ll", REST_SECONDS, 0))
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)  # it may be silent for a whole trial
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 60)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._readable = select.poll()
        self._readable.register(connection, select.POLLIN)

    def send(self, content: Any) -> None:
        self.send_bytes(pickle.dumps(content))

    def recv(self) -> Any:
        """Return the next message.

        Raises:
            EOFError: the other end has closed the connection.
            TamperedError: it was changed on its way.
        """
        return pickle.loads(self.receive_bytes())

    def send_bytes(self, content: bytes) -> None:
        self._send(_MESSAGE, content)

    def receive_bytes(self) -> bytes:
        """Return the next message as it was sent by `send_bytes`; raises as `recv`."""
        self.wait(None)
        try:
            kind, length = _HEADER.unpack(self._part(b"header", _HEADER.size))
            content = self._part(b"body", length)
            self._received += 1
            if kind == _REFUSAL:
                raise TamperedError("the other end got a message that was changed on its way")
            return content
        except TamperedError:
            with contextlib.suppress(OSError):
                self._send(_REFUSAL, b"")
            raise

    def wait(self, seconds: float | None) -> bool:
        """Wait until there is something to receive, the end included; tell whether there is."""
        return bool(self._readable.poll(None if seconds is None else 1000 * seconds))

    def messages(self) -> Iterator[bytes]:
        """Yield messages until the connection ends, and close it; raises TamperedError."""
        with self._socket:
            while True:
                try:
                    content = self.receive_bytes()
                except TamperedError:
                    raise
                except (OSError, EOFError):
                    return
                yield content

    def end(self) -> None:
        """End the connection, for both ends and for whoever waits; idempotent."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """End it and let go of its descriptor: only where nobody waits for a message."""
        self.end()
        self._socket.close()

    def _send(self, kind: int, content: bytes) -> None:
        with self._lock:
            header = _HEADER.pack(kind, len(content))
            tags = _tag(self._sending, self._sent, b"header", header), _tag(self._sending, self._sent, b"body", content)
            self._sent += 1
            self._socket.sendall(b"".join((header, tags[0], content, tags[1])))

    def _part(self, name: bytes, length: int) -> bytes:
        """Receive a part of a message, and its tag."""
        content = _exactly(self._socket, length + TAG_BYTES)
        if not hmac.compare_digest(content[length:], _tag(self._receiving, self._received, name, content[:length])):
            raise TamperedError(f"message {self._received + 1} was changed on its way")
        return content[:length]


class Greeted(NamedTuple):
    """A job that knows the key: what it says of itself, what proves to it that we do, and the keys to send and receive with."""

    about: Any
    proof: bytes
    sending: bytes
    receiving: bytes


class Greeting:
    """The coordinator's side of a greeting, which takes in bytes as they come."""

    def __init__(self, key: bytes) -> None:
        self._key, self._received = key, b""
        self.nonce = os.urandom(NONCE_BYTES)  # to be sent first

    def take(self, part: bytes) -> Greeted | None:
        """Return what the job has shown; None: more is to come.

        Raises:
            ValueError: it does not know the key.
        """
        self._received += part
        begin = NONCE_BYTES + _LENGTH.size
        if len(self._received) < begin:
            return None
        end = begin + min(*_LENGTH.unpack_from(self._received, NONCE_BYTES), MOST_ABOUT_BYTES)
        if len(self._received) < end + TAG_BYTES:
            return None
        hello, proof = self._received[:end], self._received[end:]
        to_job, to_coordinator, of_job, of_coordinator = _derived(self._key, self.nonce + hello)
        if not hmac.compare_digest(proof, of_job):
            raise ValueError("it does not know the key")
        return Greeted(json.loads(hello[begin:]), of_coordinator, to_job, to_coordinator)


def greet(host: str, port: int, key: bytes, about: Any) -> Channel:
    """Connect to the coordinator; `about`: what it is told of this end, a JSON value.

    Raises:
        OSError: it cannot be reached, or has let this connection go: there were too many at once.
        TamperedError: who answers does not know the key.
    """
    connection = socket.create_connection((host, port), timeout=GREETING_SECONDS)
    try:
        nonce, text = _exactly(connection, NONCE_BYTES), json.dumps(about).encode()
        hello = os.urandom(NONCE_BYTES) + _LENGTH.pack(len(text)) + text
        to_job, to_coordinator, of_job, of_coordinator = _derived(key, nonce + hello)
        connection.sendall(hello + of_job)
        if not hmac.compare_digest(_exactly(connection, TAG_BYTES), of_coordinator):
            raise TamperedError(f"the command must know the run's key, but who answers at {host}:{port} does not")
        return Channel(connection, to_coordinator, to_job)
    except EOFError as error:
        connection.close()
        raise ConnectionResetError(f"{host}:{port} has let this connection go") from error
    except BaseException:
        connection.close()
        raise


def _derived(key: bytes, greeting: bytes) -> list[bytes]:
    """Return the keys to the job and to the coordinator, the job's proof and the coordinator's."""
    names = (b"to the job", b"to the coordinator", b"of the job", b"of the coordinator")
    return [hmac.digest(key, b"tuneoff %s\0" % name + greeting, "sha256") for name in names]


def _tag(key: bytes, number: int, name: bytes, part: bytes) -> bytes:
    """Return what authenticates a part of a message; `name`: header or body, which cannot stand for each other."""
    return hmac.digest(key, b"%s\0%s%s" % (name, _NUMBER.pack(number), part), "sha256")


def _exactly(connection: socket.socket, length: int) -> bytes:
    content = bytearray()
    while len(content) < length:
        try:
            part = connection.recv(min(length - len(content), 1 << 20))
        except BlockingIOError as error:
            raise TamperedError(f"a part of a message came, but not its rest within {REST_SECONDS} s") from error
        if not part:
            raise EOFError
        content += part
    return bytes(content)
