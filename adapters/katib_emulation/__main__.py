"""`python -m katib_emulation FOLDER --kubeconfig PATH`: serve until a signal or the parent's end."""

from __future__ import annotations

import argparse
import contextlib
import os
import secrets
import signal
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

from katib_emulation import kubeconfig
from katib_emulation.errors import StatusError, StorageError

PROGRAM = "python -m katib_emulation"

SWITCH_SECONDS = 0.0005
"""A thread that writes the database must not wait 5 ms (Python's default) for the interpreter while it holds the store's lock."""

DESCRIPTION = """\
Serve a small emulation of a Kubernetes cluster with Katib v0.19 on 127.0.0.1: what the unmodified KatibClient (kubeflow-katib)
and tuneoff's adapters need of it to run experiments. Each trial's pod is a process of this machine. It is no Katib: use it to
try code that talks to Katib, never to measure Katib. docs/katib.md says what is the same and what is not.

The server ends on SIGTERM or SIGINT, and when the process that started it ends; the pods' processes end with it. It keeps its
objects in FOLDER, and goes on with them when it is started there again. The kubeconfig appears when requests are served, holds
the secret token that every request needs, and is removed at the end; a file that is at PATH already is refused."""


class ServerEnd:
    """The moment at which the server has to end, and why.

    It comes through a pipe: a signal may be delivered to any thread, and would not wake the main one out of a lock.
    """

    def __init__(self) -> None:
        self.failure: str | None = None
        self._reader, self._writer = os.pipe()
        os.set_blocking(self._writer, False)
        signal.set_wakeup_fd(self._writer, warn_on_full_buffer=False)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: None)

    def with_parent(self, parent: int | None) -> None:
        """End when the process `parent` ends; None: when the one ends that started this one. It is a failure if there is none."""
        starter = os.getppid()
        try:
            descriptor = os.pidfd_open(parent or starter)
        except OSError as error:
            self.fail(f"process {parent or starter} of --parent cannot be watched: {error.strerror}")
            return
        from katib_emulation.processes import readable

        def watch() -> None:
            readable(None, descriptor)
            self._end()

        threading.Thread(target=watch, name="parent", daemon=True).start()
        if parent is None and os.getppid() != starter:
            self._end()

    def fail(self, reason: object) -> None:
        """End with a failure; the first one is kept."""
        self.failure = self.failure or str(reason)
        self._end()

    def wait(self) -> None:
        """Wait for it."""
        os.read(self._reader, 1)

    def _end(self) -> None:
        with contextlib.suppress(BlockingIOError):  # it was told often enough
            os.write(self._writer, b"e")


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve until the end; return the exit code: 0, 1 (the folder or a file fails) or 2 (wrong arguments)."""
    options = _parser().parse_args(arguments)
    sys.setswitchinterval(SWITCH_SECONDS)
    ending = ServerEnd()
    ending.with_parent(options.parent)
    try:
        if ending.failure is None:
            _serve(options, ending)
    except (StorageError, StatusError, OSError) as error:
        ending.fail(error)
    if ending.failure is not None:
        print(f"error: the emulated cluster cannot go on: {ending.failure}", file=sys.stderr)
        return 1
    return 0


def _serve(options: argparse.Namespace, ending: ServerEnd) -> None:
    from katib_emulation.controllers import Controllers
    from katib_emulation.installation import install
    from katib_emulation.node import Node
    from katib_emulation.observations import Observations
    from katib_emulation.server import (
        Api,  # after the signals: loading them takes a moment
        Server,
    )
    from katib_emulation.store import Store

    os.environ["PATH"] = os.pathsep.join(filter(None, (str(Path(sys.executable).parent), os.environ.get("PATH"))))  # of the pods
    path, folder = options.kubeconfig, options.folder
    kubeconfig.claim(path)  # one of an earlier server has to go: the file says that requests are served
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    status = folder.stat()
    if status.st_uid != os.geteuid() or status.st_mode & 0o022:  # pods' commands are kept there
        raise PermissionError(f"the folder must be yours, but others can write into {folder}; choose another one")
    store = Store(folder, ending.fail)
    if not options.without_katib:
        install(store)
    observations, token = Observations(store.database), secrets.token_urlsafe(32)
    node = Node(store, observations, folder, options.image, options.cpus, options.memory)
    controllers = Controllers(store, observations, options.lose_answers)
    api = Api(store, node, options.deny, has_katib=not options.without_katib)
    server = Server(api, token, options.access_log)
    node.start()
    controllers.start()
    server.start()
    try:
        kubeconfig.write(path, server.url, token, folder)
        ready = f"serving an emulated cluster with Katib on {server.url}; kubeconfig {path}; objects in {folder}; "
        with contextlib.suppress(OSError):  # whoever started the server may have closed that end
            os.write(1, f"{ready}to end it: Ctrl-C, or kill {os.getpid()}\n".encode())
        ending.wait()
    finally:
        kubeconfig.remove(path, folder)  # before the folder is let go: then the next server may write one
        server.stop()
        controllers.stop()
        node.stop()
        store.close()


def _parser() -> argparse.ArgumentParser:
    formatter = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(prog=PROGRAM, description=DESCRIPTION, formatter_class=formatter)
    add = parser.add_argument
    add("folder", metavar="FOLDER", type=_path, help="where objects, logs and volumes are kept; made if missing")
    add("--kubeconfig", metavar="PATH", type=_path, required=True, help="the kubeconfig to write when ready to serve")
    image = "an image that pods may name; all others cannot be pulled (repeatable; default: any is taken). Nothing of it is used"
    add("--image", metavar="NAME", action="append", default=[], help=image)
    add("--cpus", metavar="N", type=float, help="processors that pods may request together (default: any)")
    add("--memory", metavar="BYTES", type=int, help="memory that pods may request together (default: any)")
    deny = "refuse a verb with 403, also in access reviews, e.g. create:experiments, get:pods/log (repeatable)"
    add("--deny", metavar="VERB:RESOURCE", action="append", default=[], help=deny)
    add("--without-katib", action="store_true", help="serve a cluster on which Katib is not installed")
    lose = "throw away every Nth answer of the suggestion services and ask again, as Katib does on a conflict (default: none)"
    add("--lose-answers", metavar="N", type=int, help=lose)
    add("--access-log", metavar="PATH", type=Path, help="append a line per request: Unix time, verb, path, code, ms")
    add("--parent", metavar="PID", type=int, help="the process with which to end (default: the one that started this one)")
    return parser


def _path(text: str) -> Path:
    return Path(text).absolute()


if __name__ == "__main__":
    sys.exit(main())
