"""Platform `kubernetes` without a cluster: an emulated one in a process of its own, behind a proxy that misbehaves on demand."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from adapters.katib.faulty_proxy import FaultyProxy
from contract.runs import SPACE, Made, experiment, make
from emulated.program import Program, program
from tuneoff.experiment.spec import Budget, ExperimentSpec, Strategy, Timeouts, Workers
from tuneoff.record.events import schema
from tuneoff.run.progress import LiveRun

REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"  # questions, though they are asked by POST
NAMESPACES = "/api/v1/namespaces"
PREFIX = "tuneoff-"  # of the namespaces of runs
FOR_EVER = float("inf")


class FaultyCluster:
    """An emulated cluster behind a proxy, as a user's kubeconfig names it."""

    def __init__(self, server: Program, proxy: FaultyProxy, folder: Path) -> None:
        self.server, self.proxy = server, proxy
        self.kubeconfig = proxy.kubeconfig(server.kubeconfig, folder / "kubeconfig")

    def options(self, **more: Any) -> dict[str, Any]:
        """Return the adapter's options for it."""
        return {"kubeconfig": str(self.kubeconfig), "image": "any.example/tuneoff:1", **more}

    def make(self, results: Path, spec: ExperimentSpec, act: Callable[[LiveRun, Path], bool] | None = None, **more: Any) -> Made:
        """Run an experiment on it under supervision."""
        return make("katib", spec, results, platform="kubernetes", options=self.options(**more), act=act)

    def namespaces(self) -> list[str]:
        """Return the namespaces of runs, asked past the proxy."""
        names = [item["metadata"]["name"] for item in self.server.ask("GET", NAMESPACES)["items"]]
        return [name for name in names if name.startswith(PREFIX)]

    def changes(self) -> list[str]:
        """Return what came through the proxy that could have changed something."""
        return [f"{one.method} {one.target}" for one in self.proxy.seen if one.method != "GET" and one.target != REVIEWS]


@contextlib.contextmanager
def faulty_cluster(folder: Path, *options: str) -> Iterator[FaultyCluster]:
    """Serve an emulated cluster behind a proxy."""
    folder.mkdir(exist_ok=True)
    with program(folder / "cluster", *options) as server, FaultyProxy(f"http://127.0.0.1:{server.port}") as proxy:
        yield FaultyCluster(server, proxy, folder)


def sleeping(trials: int, epochs: int = 4, epoch_seconds: float = 0.25, **changes: Any) -> ExperimentSpec:
    """Return an experiment whose trials take time and no processor."""
    timeouts = Timeouts(trial_seconds=60, silence_seconds=30, trials_seconds=100)
    given: dict[str, Any] = {
        "search_space": SPACE,
        "sampler": Strategy(name="random"),
        "budget": Budget(trials=trials, epochs_per_trial=epochs),
        "workers": Workers(count=2),
        "timeouts": timeouts,
    }
    return experiment("sleep", {"epoch_seconds": epoch_seconds}, **{**given, **changes})


@dataclass(frozen=True)
class Fault:
    """What goes wrong, once so many trials are completed, and for how many seconds."""

    completed: int
    begin: Callable[[FaultyProxy], None]
    seconds: float


@dataclass
class Faults:
    """Does one after another to a proxy while a run goes on: to be given to a run as its `act`."""

    proxy: FaultyProxy
    left: Sequence[Fault]
    began: list[float] = field(default_factory=list)  # monotonic seconds
    _free_at: float = 0.0

    def __call__(self, live: LiveRun, folder: Path) -> bool:
        now = time.monotonic()
        # where nothing runs, there is nothing to lose
        if self.left and now >= self._free_at and live.completed >= self.left[0].completed and live.running:
            fault, *self.left = self.left
            fault.begin(self.proxy)
            self.began.append(now)
            self._free_at = now + fault.seconds + 0.5
            if fault.seconds < FOR_EVER:
                timer = threading.Timer(fault.seconds, self.proxy.restore)
                timer.daemon = True
                timer.start()
        return False


def answering(status: int) -> Callable[[FaultyProxy], None]:
    """Return the fault of a server that answers everything with an error; what was open is cut."""

    def begin(proxy: FaultyProxy) -> None:
        proxy.status = status
        proxy.cut()

    return begin


def hang(proxy: FaultyProxy) -> None:
    """Let the server take requests and never answer; what was open is cut."""
    proxy.is_hanging = True
    proxy.cut()


def miscounted(made: Made) -> list[str]:
    """Return which events of a run are lost or doubled: each trial is submitted, starts and ends once, with each epoch once."""
    epochs = made.record.run_spec().experiment.budget.epochs_per_trial
    submitted: dict[str, int] = {}
    told: dict[str, list[str]] = {}
    for event in made.events():
        if isinstance(event, schema.TrialSubmitted):  # by another process: not always in order with the pod's events
            submitted[event.trial] = submitted.get(event.trial, 0) + 1
        elif isinstance(event, schema.TrialStarted | schema.TrialEnded):
            told.setdefault(event.trial, []).append(type(event).__name__)
        elif isinstance(event, schema.Epoch):
            told.setdefault(event.trial, []).append(f"epoch {event.epoch}")
    whole = ["TrialStarted", *(f"epoch {number}" for number in range(1, epochs + 1)), "TrialEnded"]
    problems = [f"{trial}: {found}" for trial, found in told.items() if found != whole]
    return problems + [f"{trial}: submitted {submitted.get(trial, 0)} times" for trial in told if submitted.get(trial) != 1]
