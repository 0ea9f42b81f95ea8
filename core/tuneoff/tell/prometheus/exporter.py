"""Live metrics of a matrix: a listener keeps the last it was told, served at http://ADDRESS:PORT/metrics while it runs."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from http import HTTPStatus
from typing import TYPE_CHECKING

from tuneoff.base.clock import NANOSECONDS
from tuneoff.base.commands import install_command
from tuneoff.base.packages import module_exists
from tuneoff.base.processes import children
from tuneoff.errors import MissingPackageError, PluginError
from tuneoff.experiment.names import emulated_label, short_label
from tuneoff.measure.power.procfs import read_stat
from tuneoff.run.progress import Listener, LiveRun
from tuneoff.tell.live.server import serving
from tuneoff.tell.live.site import Answer, text_answer

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry
    from prometheus_client.core import Metric

    from tuneoff.experiment.plan import Plan, PlannedRun


STATUSES = ("done", "failed", "timeout", "interrupted", "skipped")
STATES = ("running", "completed", "pruned", "failed", "cancelled")
PATH = "/metrics"


@contextlib.contextmanager
def exported(plan: Plan, shown: Listener, port: int, address: str) -> Iterator[tuple[LiveMetrics, str]]:
    """Yield the listener that exports what it is told (and tells `shown`), and the address of its page; port 0 is a free one.

    Raises:
        MissingPackageError: prometheus-client is not installed.
        ExperimentError: the address cannot be listened on.
    """
    if not module_exists("prometheus_client"):
        raise MissingPackageError(
            f"`--metrics-port` needs the prometheus-client package; run: {install_command('prometheus-client')}"
        )
    try:
        from prometheus_client import CollectorRegistry
    except ImportError as error:
        raise PluginError(
            f"prometheus-client is installed, but its import fails: {error}; run: {install_command('prometheus-client')}"
        ) from error
    metrics = LiveMetrics(plan, shown)
    registry = CollectorRegistry(auto_describe=False)
    registry.register(metrics)
    with serving(_Page(registry), address, port, is_open=True, option="--metrics-") as server:
        yield metrics, f"{server.url}{PATH.removeprefix('/')}"


class _Page:
    """The metrics of a registry as Prometheus reads them."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._registry = registry

    def answer(self, path: str) -> Answer:
        from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

        if path != PATH:
            return text_answer(HTTPStatus.NOT_FOUND, f"the metrics are at {PATH}")
        return Answer(content_type=CONTENT_TYPE_LATEST, body=generate_latest(self._registry))


class LiveMetrics(Listener):
    """Listens, tells `shown` all of it, and is a collector of the Prometheus client: `collect` runs in the server's threads."""

    def __init__(self, plan: Plan, shown: Listener, clock: Callable[[], float] = time.monotonic) -> None:
        self._shown, self._clock = shown, clock
        self._runs = {run.run_id: run for run in plan.runs}
        self._planned = len(plan.runs)
        self._lock = threading.Lock()
        self._ended: Counter[str] = Counter(dict.fromkeys(STATUSES, 0))
        self._epochs_before = 0  # of the runs before the current one
        self._run: PlannedRun | None = None
        self._position = 0
        self._is_running = False
        self._live: LiveRun | None = None
        self._step_since = 0.0
        self._cpu_seconds = 0.0  # a counter must not fall

    def noted(self, text: str) -> None:
        self._shown.noted(text)

    def begun(self, run_ids: Sequence[str]) -> None:
        self._shown.begun(run_ids)

    def run_started(self, position: int, total: int, label: str, run_id: str) -> None:
        with self._lock:
            self._epochs_before += self._live.epochs if self._live is not None else 0
            self._run, self._position, self._is_running = self._runs.get(run_id), position, True
            self._live, self._step_since = None, self._clock()
        self._shown.run_started(position, total, label, run_id)

    def run_progress(self, live: LiveRun) -> None:
        with self._lock:
            if self._live is None or live.step != self._live.step:
                self._step_since = self._clock()
            self._live = live
        self._shown.run_progress(live)

    def run_ended(self, position: int, total: int, label: str, status: str, reason: str | None, seconds: float) -> None:
        with self._lock:
            self._ended[status] += 1
            self._is_running = False
        self._shown.run_ended(position, total, label, status, reason, seconds)

    def collect(self) -> Iterator[Metric]:
        """Yield the metrics as they are now; those of the last run stay until the next one starts."""
        with self._lock:
            found = [*self._of_matrix(), *self._of_run()]
        yield from found
        yield from self._of_tree()

    def _of_matrix(self) -> Iterator[Metric]:
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

        yield GaugeMetricFamily("tuneoff_runs_planned", "Runs of the matrix, warm-ups and skipped ones included", self._planned)
        yield GaugeMetricFamily("tuneoff_runs_running", "Runs that are running now: 0 or 1", int(self._is_running))
        ended = CounterMetricFamily("tuneoff_runs_ended", "Runs that ended or were skipped", labels=["status"])
        for status, count in self._ended.items():
            ended.add_metric([status], count)
        yield ended
        epochs = self._epochs_before + (self._live.epochs if self._live is not None else 0)
        yield CounterMetricFamily("tuneoff_epochs", "Epochs trained by all trials of all runs of this command", epochs)

    def _of_run(self) -> Iterator[Metric]:
        """Yield what is known of the current run, or of the last one."""
        from prometheus_client.core import GaugeMetricFamily, InfoMetricFamily

        if self._run is not None:
            yield InfoMetricFamily("tuneoff_run", "The run that runs now, or ran last", _labels(self._run, self._position))
        live = self._live
        if live is None:
            return
        states = GaugeMetricFamily("tuneoff_run_trials", "Trials of the run by state", labels=["state"])
        for state in STATES:
            states.add_metric([state], getattr(live, state))
        yield states
        yield GaugeMetricFamily("tuneoff_run_trials_planned", "Budget of the run in trials", live.trials)
        yield GaugeMetricFamily("tuneoff_run_trials_submitted", "Trials that the framework has submitted", live.submitted)
        yield GaugeMetricFamily("tuneoff_run_epochs", "Epochs trained by all trials of the run", live.epochs)
        yield GaugeMetricFamily(
            "tuneoff_run_duration_seconds", "Seconds since the run's start of deploy, when last looked at", live.seconds
        )
        if self._is_running:
            step = GaugeMetricFamily(
                "tuneoff_run_step_duration_seconds", "Seconds in the current step of the run", labels=["step"]
            )
            step.add_metric([live.step], self._clock() - self._step_since)
            yield step
        if live.incumbent is not None:
            text = "Best validation value of a completed trial of the run"
            metric = self._run.spec.experiment.objective.metric if self._run is not None else ""
            incumbent = GaugeMetricFamily("tuneoff_run_incumbent", text, labels=["metric"])
            incumbent.add_metric([metric], live.incumbent)
            yield incumbent

    def _of_tree(self) -> Iterator[Metric]:
        """Yield what this process and all below it use now; what a process used that ended unseen stays unknown."""
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

        processes, cpu_seconds, rss_bytes = tree_use(os.getpid())
        with self._lock:  # a process that is just being waited for is neither here nor there
            self._cpu_seconds = max(self._cpu_seconds, cpu_seconds)
        yield GaugeMetricFamily("tuneoff_tree_processes", "Processes of this command, tuneoff's own included", processes)
        yield CounterMetricFamily("tuneoff_tree_cpu_seconds", "CPU time of this command's processes", self._cpu_seconds)
        text = "Resident memory of this command's processes; shared pages count once per process"
        yield GaugeMetricFamily("tuneoff_tree_resident_memory_bytes", text, rss_bytes)


def tree_use(root: int) -> tuple[int, float, int]:
    """Return the number of processes from `root` down, their CPU time in s (with that of ended children), their RSS in bytes."""
    count, cpu_ns, rss_bytes = 0, 0, 0
    waiting, seen = [root], set[int]()
    while waiting:
        pid = waiting.pop()
        stat = read_stat(pid) if pid not in seen else None
        seen.add(pid)
        if stat is not None:
            count += 1
            cpu_ns += stat.cpu_ns + stat.children_cpu_ns
            rss_bytes += stat.rss_bytes
            waiting.extend(children(pid))
    return count, cpu_ns / NANOSECONDS, rss_bytes


def _labels(run: PlannedRun, position: int) -> dict[str, str]:
    """Return what tells a run from the others."""
    spec = run.spec
    label = short_label(run.label, spec.adapter)
    return {
        "run_id": run.run_id,
        "label": emulated_label(label, spec) if run.emulated else label,
        "adapter": spec.adapter,
        "platform": spec.platform,
        "emulated": str(run.emulated).lower(),
        "sampler": spec.experiment.sampler.name,
        "pruner": spec.experiment.pruner.name,
        "seed": str(spec.seed),
        "warm_up": str(spec.warm_up).lower(),
        "position": str(position),
    }
