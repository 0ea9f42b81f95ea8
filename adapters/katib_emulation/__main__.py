"""`python -m katib_emulation FOLDER --kubeconfig PATH`: serve until a signal or the parent's end."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import secrets
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from katib_emulation.objects import Object, Store

NAME = "emulated"
NAMESPACE = "kubeflow"

DESCRIPTION = """\
Serve a small emulation of a Kubernetes cluster with Katib v0.19 on 127.0.0.1: what the unmodified KatibClient (kubeflow-katib)
and tuneoff's adapters need of it to run experiments. Each trial's pod is a process of this machine. It is no Katib: use it to
try code that talks to Katib, never to measure Katib. docs/katib.md says what is the same and what is not.

The server ends on SIGTERM or SIGINT, and when the process that started it ends; the pods' processes end with it, and so do its
objects (SIGKILL leaves processes and the kubeconfig). The kubeconfig appears when requests are served, holds the secret token
that every request needs, and is removed at the end; a file that is at PATH already is refused."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve until the end; return the exit code: 0, 1 (the folder or a file fails) or 2 (wrong arguments)."""
    options = _parser().parse_args(arguments)
    sys.setswitchinterval(0.0005)  # who holds the store's lock must not wait 5 ms (Python's default) for the interpreter
    reader, writer = os.pipe()  # of signals: one may be delivered to any thread, and would not wake the main one out of a lock
    os.set_blocking(writer, False)
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: None)
    try:
        starter = os.getppid()
        try:
            parent = os.pidfd_open(options.parent or starter)
        except OSError as error:
            raise OSError(f"process {options.parent or starter} of --parent cannot be watched: {error.strerror}") from error
        if options.parent is not None or os.getppid() == starter:
            _serve(options, reader, parent)
    except OSError as error:
        print(f"error: the emulated cluster cannot go on: {error}", file=sys.stderr)
        return 1
    return 0


def _serve(options: argparse.Namespace, *endings: int) -> None:
    """Serve until one of the descriptors is readable."""
    from katib_emulation.collector import Observations  # after the signals: loading them takes a moment
    from katib_emulation.controllers import Controllers, reconcilers
    from katib_emulation.node import Node
    from katib_emulation.objects import Store
    from katib_emulation.processes import readable
    from katib_emulation.server import Api, Server

    os.environ["PATH"] = os.pathsep.join(filter(None, (str(Path(sys.executable).parent), os.environ.get("PATH"))))  # of the pods
    path, folder = options.kubeconfig, options.folder
    if os.path.lexists(path):
        raise FileExistsError(f"--kubeconfig {path} is there already; remove it, or give a path where no file is")
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    status = folder.stat()
    if status.st_uid != os.geteuid() or status.st_mode & 0o022:  # pods' commands are kept there
        raise PermissionError(f"the folder must be yours, but others can write into {folder}; choose another one")
    store, observations, token = Store(), Observations(), secrets.token_urlsafe(32)
    if not options.without_katib:
        install(store)
    node = Node(store, observations, folder, options.image)
    controllers = Controllers(store, reconcilers(store, observations, options.lose_answers))
    server = Server(Api(store, node.log, has_katib=not options.without_katib), token, options.access_log)
    for part in (node, controllers, server):
        part.start()
    try:
        write_kubeconfig(path, server.url, token)
        ready = f"serving an emulated cluster with Katib on {server.url}; kubeconfig {path}; pods' files in {folder}; "
        with contextlib.suppress(OSError):  # whoever started the server may have closed that end
            os.write(1, f"{ready}to end it: Ctrl-C, or kill {os.getpid()}\n".encode())
        readable(None, *endings)
        path.unlink(missing_ok=True)
    finally:
        for part in (server, controllers, node):
            part.stop()
        store.close()


def install(store: Store) -> None:
    """Create what an installed Katib looks like through the API: its deployments, marked `emulated`, in a namespace with a label.

    The configurations of its webhooks are not there, as for a user who may not read them.
    """
    from katib_emulation.admission import INJECTION_LABEL
    from katib_emulation.objects import DEPLOYMENTS, NAMESPACES, set_condition

    store.update(NAMESPACES, NAMESPACE, None, lambda obj: obj["metadata"].update(labels={INJECTION_LABEL: "enabled"}))
    for name in ("katib-controller", "katib-db-manager"):
        container = {"name": name, "image": f"emulated/{name}:v0.19.0-emulated"}
        deployment: Object = {"metadata": {"name": name}, "spec": {"template": {"spec": {"containers": [container]}}}}
        set_condition(deployment, "Available", "MinimumReplicasAvailable", "Deployment has minimum availability.")
        store.create(DEPLOYMENTS, deployment, NAMESPACE)


def write_kubeconfig(path: Path, url: str, token: str) -> None:
    """Write the kubeconfig of the server at `url`, at once, readable by its owner only (JSON, which is YAML too).

    The API runs commands for whoever may create an experiment. Loopback alone keeps out neither other users of the machine nor
    web pages; the token can be read by the owner of the file alone.

    Raises:
        OSError: it cannot be written, or a file is at `path`, which stays.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": NAME, "cluster": {"server": url}}],
        "users": [{"name": NAME, "user": {"token": token}}],
        "contexts": [{"name": NAME, "context": {"cluster": NAME, "user": NAME}}],
        "current-context": NAME,
    }
    fresh = path.with_name(f".{path.name}.{os.getpid()}")
    with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "w") as file:
        file.write(json.dumps(config, indent=2) + "\n")
    try:
        os.link(fresh, path)
    finally:
        fresh.unlink()


def _parser() -> argparse.ArgumentParser:
    formatter = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(prog="python -m katib_emulation", description=DESCRIPTION, formatter_class=formatter)
    add = parser.add_argument
    add("folder", metavar="FOLDER", type=_path, help="where pods' logs and volumes are kept; made if missing")
    add("--kubeconfig", metavar="PATH", type=_path, required=True, help="the kubeconfig to write when ready to serve")
    image = "an image that pods may name; all others cannot be pulled (repeatable; default: any is taken). Nothing of it is used"
    add("--image", metavar="NAME", action="append", default=[], help=image)
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
