"""How often the adapter `katib` asks while a run only waits, counted at the (emulated) API server."""

from __future__ import annotations

import contextlib
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from benchmarks.speed.child import MeasurementError, child_environment
from benchmarks.speed.row import SpeedRow, SpeedTarget, skipped
from benchmarks.speed.server_requests import LoggedRequest, most_within, read_access_log
from benchmarks.speed.settings import Settings
from benchmarks.speed.sides import KATIB, Side, run_tuneoff, why_missing
from benchmarks.speed.specs import WORKERS
from benchmarks.speed.statistics import estimate

NAME = "katib_polling"
A = "polling requests within any one second while both trials of a run with katib only sleep: the most"
SLEEP_SECONDS, QUICK_SECONDS = 40.0, 8.0  # longer than a watch: it is taken up again meanwhile
MARGIN_SECONDS = 1.5  # at both ends: what a trial's start and end bring about is not waiting
RUNS = 3
TARGET = SpeedTarget("<=", 2.0)
IMAGE = "tuneoff.local/speed:1"
READY_SECONDS, END_SECONDS = 20.0, 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """What was asked during one wait of `seconds`."""

    seconds: float
    requests: tuple[LoggedRequest, ...]

    @property
    def most_polls(self) -> int:
        return most_within([request.t for request in self.requests if request.sort == "poll"], 1.0)

    def rates(self) -> dict[str, float]:
        """Return the mean rate of each sort, in requests per second."""
        counts = Counter(request.sort for request in self.requests)
        return {
            "polling, mean per s": counts["poll"] / self.seconds,
            "watches taken up again per s": counts["watch"] / self.seconds,
            "logs taken up again per s": counts["log"] / self.seconds,
        }


def measure(settings: Settings) -> Iterator[SpeedRow]:
    """Yield one row, in requests per second."""
    if KATIB.adapter not in settings.adapters:
        return
    reason = why_missing(KATIB)
    waits: list[Waiting] = []
    try:
        for number in range(settings.repeats(RUNS)) if reason is None else ():
            waits.append(_wait(settings))
            settings.say(f"  {NAME}: run {number + 1}, {waits[-1].most_polls} within a second")
    except MeasurementError as error:
        reason = str(error)
    if reason is not None:
        yield skipped(NAME, A, reason, target=TARGET)
        return
    rates = [wait.rates() for wait in waits]
    yield SpeedRow(
        name=NAME,
        a=A,
        unit="/s",
        result=estimate([float(wait.most_polls) for wait in waits]),
        target=TARGET,
        figures={name: estimate([rate[name] for rate in rates]).value for name in rates[0]}
        | {"wait s": estimate([wait.seconds for wait in waits]).value},
        samples={"most_polls": [float(wait.most_polls) for wait in waits]},
        note="The adapter's platform kubernetes, at an emulated server that keeps an access log; at a cluster it asks the same.",
    )


def _wait(settings: Settings) -> Waiting:
    seconds = QUICK_SECONDS if settings.is_quick else SLEEP_SECONDS
    folder = Path(tempfile.mkdtemp(prefix="polling-", dir=settings.folder))
    try:
        with _server(folder) as access_log:
            options = {"kubeconfig": str(folder / "kubeconfig"), "image": IMAGE}
            side = run_tuneoff(
                KATIB.adapter,
                "sleep",
                WORKERS,
                settings,
                options={"epoch_seconds": seconds},
                platform="kubernetes",
                adapter_options=options,
            )
            return waiting(side, read_access_log(access_log), time.time() - time.monotonic())
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def waiting(side: Side, requests: list[LoggedRequest], offset: float) -> Waiting:
    """Return what was asked while all trials of a run slept; `offset`: seconds from monotonic to Unix time.

    Raises:
        MeasurementError: there was no such time.
    """
    started = max(trial[2] for trial in side.details["trials"]) / 1e9 + offset + MARGIN_SECONDS
    ended = min(trial[4] for trial in side.details["trials"]) / 1e9 + offset - MARGIN_SECONDS
    if ended <= started:
        raise MeasurementError("the trials did not sleep at the same time")
    return Waiting(seconds=ended - started, requests=tuple(request for request in requests if started <= request.t <= ended))


@contextlib.contextmanager
def _server(folder: Path) -> Iterator[Path]:
    """Serve an emulated cluster with `folder/kubeconfig`; yield its access log."""
    kubeconfig, access_log, errors = folder / "kubeconfig", folder / "access.log", folder / "errors"
    command = [sys.executable, "-m", "katib_emulation", str(folder / "cluster")]
    command += ["--kubeconfig", str(kubeconfig), "--image", IMAGE, "--access-log", str(access_log)]
    with errors.open("wb") as output:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=output, env=child_environment()
        )
    try:
        deadline = time.monotonic() + READY_SECONDS
        while not kubeconfig.exists():
            if process.poll() is not None or time.monotonic() > deadline:
                raise MeasurementError(f"the emulated API server did not start: {errors.read_text().strip()[-200:]}")
            time.sleep(0.01)
        yield access_log
    finally:
        process.terminate()
        try:
            process.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
