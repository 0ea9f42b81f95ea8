"""`python -m katib_emulation FOLDER --kubeconfig PATH`: serve until a signal or the parent's end."""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from katib_emulation.http.access import Denial
from katib_emulation.kinds import KATIB_VERSION, KATIB_VERSIONS, NEXT_KATIB_VERSION, NO_KATIB
from katib_emulation.kubeconfig import Kubeconfig, KubeconfigError, token_of
from katib_emulation.lifetime import Ending
from katib_emulation.statuses import ApiError
from katib_emulation.storage.journal import JournalError

PROGRAM = "python -m katib_emulation"

HIGHEST_PORT = 65535
HIGHEST_PID = 2**22  # Linux's own bound

SWITCH_SECONDS = 0.0005
"""A thread that writes the journal must not wait 5 ms (Python's default) for the interpreter while it holds the store's lock."""

DESCRIPTION = """\
Serve a small emulation of a Kubernetes cluster with Katib v0.19 on 127.0.0.1: enough of the REST
API for the unmodified KatibClient (kubeflow-katib) and for watches, logs and events. Each trial's
pod is a process of this machine. It is no Katib: use it to try code that talks to Katib, never to
measure Katib.

Served are create, get, list, watch, update, patch and delete of Experiments, Trials, Suggestions,
Jobs, pods (with their logs), events, config maps, Secrets, Services, service accounts, claims,
Deployments, roles, role bindings, namespaces, definitions and webhooks, and access reviews. Not
served are gRPC (the database manager: KatibClient.get_trial_metrics), the UI, training jobs such
as PyTorchJob, and any suggestion but random, grid and multivariate-tpe; medianstop is there.

The server ends on SIGTERM or SIGINT, and when the process that started it ends; the pods' processes
end with it. It keeps its objects in FOLDER, and goes on with them when it is started there again.
The kubeconfig appears when requests are served, holds the secret token that every request needs,
and is removed at the end; a file that is already at PATH is left alone, and refused. One line on
stdout says when requests are served."""

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
    ending.with_parent(options.parent)
    try:
        if ending.failure is None:
            _serve(options, ending)
    except (JournalError, KubeconfigError, ApiError, OSError) as error:
        ending.fail(error)
    if ending.failure is not None:
        print(f"error: the emulated cluster cannot go on: {ending.failure}", file=sys.stderr)
        return 1
    return 0


def _serve(options: argparse.Namespace, ending: Ending) -> None:
    from katib_emulation.cluster import Cluster, Settings  # after the signals: loading it takes a moment

    os.environ["PATH"] = os.pathsep.join(filter(None, (str(Path(sys.executable).parent), os.environ.get("PATH"))))  # of the pods
    kubeconfig = Kubeconfig(options.kubeconfig, options.folder)
    kubeconfig.claim()  # one of an earlier server has to go: the file says that requests are served
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
        kubeconfig.write(cluster.server.url, token)
        _say(1, ready_line(cluster.server.url, kubeconfig.path, options.folder))
        ending.wait()
    finally:
        if not kubeconfig.remove():  # before the folder is let go: then the next server may write one
            _say(2, f"{kubeconfig.path} was changed by somebody else and is left; nothing serves its address now")
        cluster.stop()


def ready_line(url: str, kubeconfig: Path, folder: Path) -> str:
    """Return what is said once requests are served."""
    return (
        f"serving an emulated cluster with Katib on {url}; kubeconfig {kubeconfig}; objects in {folder.absolute()}; "
        f"to end it: Ctrl-C, or kill {os.getpid()}"
    )


def _say(descriptor: int, line: str) -> None:
    """Print a line, which nobody may want: whoever started the server may have closed that end."""
    with contextlib.suppress(OSError):
        os.write(descriptor, f"{line}\n".encode())


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=PROGRAM, description=DESCRIPTION, epilog=EXAMPLE, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", metavar="FOLDER", type=Path, help="where objects, logs and volumes are kept; made if missing")
    parser.add_argument(
        "--kubeconfig", metavar="PATH", type=Path, required=True, help="the kubeconfig to write when ready to serve"
    )
    parser.add_argument("--port", type=_whole(0, HIGHEST_PORT), default=0, help="port on 127.0.0.1 (default: a free one)")
    parser.add_argument(
        "--image",
        metavar="NAME",
        type=_image,
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
        choices=KATIB_VERSIONS,
        default=KATIB_VERSION,
        help=f"{NEXT_KATIB_VERSION}: serve Katib's API in that version only, which no client of today can use; {NO_KATIB}: Katib "
        f"is not installed (default: {KATIB_VERSION})",
    )
    parser.add_argument(
        "--access-log", metavar="PATH", type=Path, help="append a line per request: Unix time, verb, path, code, ms"
    )
    parser.add_argument(
        "--parent",
        metavar="PID",
        type=_whole(1, HIGHEST_PID),
        help="the process with which to end (default: the one that started this one)",
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


def _whole(low: int, high: int) -> Callable[[str], int]:
    """Return a type for argparse: a whole number from `low` to `high`."""

    def parse(text: str) -> int:
        try:
            number = int(text)
        except ValueError:
            number = low - 1
        if not low <= number <= high:
            raise argparse.ArgumentTypeError(f"must be a whole number from {low} to {high}, but got {text!r}")
        return number

    return parse


def _image(text: str) -> str:
    if not text or text != "".join(text.split()):
        raise argparse.ArgumentTypeError(f"must be an image's name such as registry.example/tuneoff:1, but got {text!r}")
    return text


def _denial(text: str) -> Denial:
    try:
        return Denial.parse(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


if __name__ == "__main__":
    sys.exit(main())
