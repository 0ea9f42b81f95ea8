"""`python -m tuneoff_adapters.katib.emulated FOLDER --kubeconfig PATH`: serve until a signal or the parent's end."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from .access import Denial
from .journal import JournalError
from .kinds import KATIB_VERSION, NO_KATIB
from .kubeconfig import token_of, write_kubeconfig
from .lifetime import Ending
from .statuses import ApiError

PROGRAM = "python -m tuneoff_adapters.katib.emulated"

SWITCH_SECONDS = 0.0005
"""A thread that writes the journal must not wait 5 ms (Python's default) for the interpreter while it holds the store's lock."""

DESCRIPTION = """\
Serve a small emulation of a Kubernetes cluster with Katib v0.19 on 127.0.0.1: enough of the REST
API for the unmodified KatibClient (kubeflow-katib) and for watches, logs and events. Each trial's
pod is a process of this machine. It is no Katib: use it to try code that talks to Katib, never to
measure Katib.

The server ends on SIGTERM or SIGINT, and when the process that started it ends; the pods' processes
end with it. It keeps its objects in FOLDER, and goes on with them when it is started there again.
The kubeconfig appears when requests are served, holds the secret token that every request needs,
and is removed at the end."""

EXAMPLE = f"""\
example:
  {PROGRAM} /tmp/emulated --kubeconfig /tmp/emulated.yaml &
  kubectl --kubeconfig /tmp/emulated.yaml get deployments -n kubeflow"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve until the end; return the exit code: 0, 1 (the folder, the port or a file fails) or 2 (wrong arguments)."""
    options = _parser().parse_args(arguments)
    sys.setswitchinterval(SWITCH_SECONDS)
    ending = Ending()
    ending.on_signals()
    ending.with_parent(options.parent or os.getppid())
    try:
        _serve(options, ending)
    except (JournalError, ApiError, OSError) as error:
        ending.fail(error)
    if ending.failure is not None:
        print(f"error: the emulated cluster cannot go on: {ending.failure}", file=sys.stderr)
        return 1
    return 0


def _serve(options: argparse.Namespace, ending: Ending) -> None:
    from .cluster import Cluster, Settings  # after the signals: loading it takes a moment

    kubeconfig: Path = options.kubeconfig
    kubeconfig.unlink(missing_ok=True)  # of an earlier server: this file says that requests are served
    options.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    token = token_of(options.folder)
    settings = Settings(
        folder=options.folder,
        port=options.port,
        token=token,
        images=tuple(options.image),
        cpus=options.cpus,
        memory=options.memory,
        denials=tuple(options.deny),
        access_log=options.access_log,
        katib_version=options.katib_version,
    )
    cluster = Cluster(settings, ending.fail)
    cluster.start()
    try:
        write_kubeconfig(kubeconfig, cluster.server.url, token)
        ending.wait()
    finally:
        kubeconfig.unlink(missing_ok=True)
        cluster.stop()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=PROGRAM, description=DESCRIPTION, epilog=EXAMPLE, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", metavar="FOLDER", type=Path, help="where objects, logs and volumes are kept; made if missing")
    parser.add_argument(
        "--kubeconfig", metavar="PATH", type=Path, required=True, help="the kubeconfig to write when ready to serve"
    )
    parser.add_argument("--port", type=int, default=0, help="port on 127.0.0.1 (default: a free one)")
    parser.add_argument(
        "--image",
        metavar="NAME",
        action="append",
        default=[],
        help="an image that pods may name; all others fail as images that cannot be pulled (repeatable; default: any is taken). "
        "Nothing of an image is used: commands are run as they are on this machine",
    )
    parser.add_argument(
        "--cpus", metavar="N", type=_positive(float), help="processors that pods may request together (default: any)"
    )
    parser.add_argument(
        "--memory", metavar="BYTES", type=_positive(int), help="memory that pods may request together (default: any)"
    )
    parser.add_argument(
        "--deny",
        metavar="VERB:RESOURCE",
        type=_denial,
        action="append",
        default=[],
        help="refuse a verb on a resource with 403, also in access reviews, e.g. create:experiments, get:pods/log (repeatable)",
    )
    parser.add_argument(
        "--katib-version",
        metavar="VERSION",
        default=KATIB_VERSION,
        help=f"serve Katib's API in this version only, e.g. v1, so that nothing of it can be used, or {NO_KATIB}: Katib is not "
        f"installed (default: {KATIB_VERSION})",
    )
    parser.add_argument(
        "--access-log", metavar="PATH", type=Path, help="append a line per request: Unix time, verb, path, code, ms"
    )
    parser.add_argument(
        "--parent", metavar="PID", type=int, help="the process with which to end (default: the one that started this one)"
    )
    return parser


def _positive(kind: Callable[[str], float]) -> Callable[[str], float]:
    """Return a type for argparse: a number above 0."""

    def parse(text: str) -> float:
        try:
            number = kind(text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(f"must be a number, but got {text!r}") from error
        if not number > 0:
            raise argparse.ArgumentTypeError(f"must be above 0, but got {text!r}")
        return number

    return parse


def _denial(text: str) -> Denial:
    try:
        return Denial.parse(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


if __name__ == "__main__":
    sys.exit(main())
