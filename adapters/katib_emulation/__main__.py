"""`python -m katib_emulation FOLDER --kubeconfig PATH`: serve until a signal or the parent's end."""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from katib_emulation import kubeconfig
from katib_emulation.kinds import KATIB_VERSION, KATIB_VERSIONS, NEXT_KATIB_VERSION, NO_KATIB
from katib_emulation.lifetime import Ending
from katib_emulation.statuses import ApiError
from katib_emulation.storage.journal import JournalError

PROGRAM = "python -m katib_emulation"

SWITCH_SECONDS = 0.0005
"""A thread that writes the journal must not wait 5 ms (Python's default) for the interpreter while it holds the store's lock."""

DESCRIPTION = """\
Serve a small emulation of a Kubernetes cluster with Katib v0.19 on 127.0.0.1: enough of the REST
API for the unmodified KatibClient (kubeflow-katib) and for watches, logs and events. Each trial's
pod is a process of this machine. It is no Katib: use it to try code that talks to Katib, never to
measure Katib.

Served are create, get, list, watch, patch (merge) and delete of Experiments, Trials, Suggestions,
Jobs, pods (with their logs), events, config maps, Services, service accounts, Deployments, roles,
role bindings, namespaces and webhooks, and access reviews. Not served are PUT, gRPC (the database
manager: KatibClient.get_trial_metrics), the UI, training jobs such as PyTorchJob, and any
suggestion but random, grid and multivariate-tpe; medianstop is there.

The server ends on SIGTERM or SIGINT, and when the process that started it ends; the pods' processes
end with it. It keeps its objects in FOLDER, and goes on with them when it is started there again.
The kubeconfig appears when requests are served, holds the secret token that every request needs,
and is removed at the end; a file that is already at PATH is left alone, and refused. One line on
stdout says when requests are served."""

EXAMPLE = f"""\
example:
  {PROGRAM} emulated --kubeconfig emulated.yaml &
  kubectl --kubeconfig emulated.yaml get deployments -n kubeflow"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve until the end; return the exit code: 0, 1 (the folder or a file fails) or 2 (wrong arguments)."""
    options = _parser().parse_args(arguments)
    sys.setswitchinterval(SWITCH_SECONDS)
    ending = Ending()
    ending.on_signals()
    ending.with_parent(options.parent)
    try:
        if ending.failure is None:
            _serve(options, ending)
    except (JournalError, kubeconfig.KubeconfigError, ApiError, OSError) as error:
        ending.fail(error)
    if ending.failure is not None:
        print(f"error: the emulated cluster cannot go on: {ending.failure}", file=sys.stderr)
        return 1
    return 0


def _serve(options: argparse.Namespace, ending: Ending) -> None:
    from katib_emulation.cluster import Cluster  # after the signals: loading it takes a moment

    os.environ["PATH"] = os.pathsep.join(filter(None, (str(Path(sys.executable).parent), os.environ.get("PATH"))))  # of the pods
    path: Path = options.kubeconfig
    kubeconfig.claim(path)  # one of an earlier server has to go: the file says that requests are served
    options.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    status = options.folder.stat()
    if status.st_uid != os.geteuid() or status.st_mode & 0o022:  # pods' commands are kept there
        raise PermissionError(f"the folder must be yours, but others can write into {options.folder}; choose another one")
    token = kubeconfig.token_of(options.folder)
    cluster = Cluster(options, token, ending.fail)
    cluster.start()
    try:
        url = cluster.server.url
        kubeconfig.write(path, url, token, options.folder)
        ready = f"serving an emulated cluster with Katib on {url}; kubeconfig {path}; objects in {options.folder}; "
        with contextlib.suppress(OSError):  # whoever started the server may have closed that end
            os.write(1, f"{ready}to end it: Ctrl-C, or kill {os.getpid()}\n".encode())
        ending.wait()
    finally:
        kubeconfig.remove(path, options.folder)  # before the folder is let go: then the next server may write one
        cluster.stop()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=PROGRAM, description=DESCRIPTION, epilog=EXAMPLE, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("folder", metavar="FOLDER", type=_path, help="where objects, logs and volumes are kept; made if missing")
    add("--kubeconfig", metavar="PATH", type=_path, required=True, help="the kubeconfig to write when ready to serve")
    add(
        "--image",
        metavar="NAME",
        action="append",
        default=[],
        help="an image that pods may name; all others fail as images that cannot be pulled (repeatable; default: any is taken). "
        "Nothing of an image is used: commands are run as they are on this machine",
    )
    add("--cpus", metavar="N", type=float, help="processors that pods may request together (default: any)")
    add("--memory", metavar="BYTES", type=int, help="memory that pods may request together (default: any)")
    add(
        "--deny",
        metavar="VERB:RESOURCE",
        action="append",
        default=[],
        help="refuse a verb on a resource with 403, also in access reviews, e.g. create:experiments, get:pods/log (repeatable)",
    )
    add(
        "--katib-version",
        choices=KATIB_VERSIONS,
        default=KATIB_VERSION,
        help=f"{NEXT_KATIB_VERSION}: serve Katib's API in that version only, which no client of today can use; {NO_KATIB}: Katib "
        f"is not installed (default: {KATIB_VERSION})",
    )
    add(
        "--lose-answers",
        metavar="N",
        type=_every,
        help="throw away every Nth answer of the suggestion services and ask again, as Katib does on a conflict (default: none)",
    )
    add("--access-log", metavar="PATH", type=Path, help="append a line per request: Unix time, verb, path, code, ms")
    add("--parent", metavar="PID", type=int, help="the process with which to end (default: the one that started this one)")
    return parser


def _every(text: str) -> int:
    number = int(text)
    if number < 2:
        raise argparse.ArgumentTypeError(f"must be at least 2, but is {number}: else no answer would be left")
    return number


def _path(text: str) -> Path:
    return Path(text).absolute()


if __name__ == "__main__":
    sys.exit(main())
