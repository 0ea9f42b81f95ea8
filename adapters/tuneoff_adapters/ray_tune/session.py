"""One Ray instance per run: started on loopback in the run's temporary folder, beside SIGTERM, and ended without a trace."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tuneoff.base.files import read_regular_text
from tuneoff.base.private_folder import PrivateFolder
from tuneoff.base.processes import MARK
from tuneoff.errors import InfrastructureError, StepError
from tuneoff_adapters.ray_tune.environment import prepare_environment
from tuneoff_adapters.ray_tune.start import patient_start
from tuneoff_platforms.remote.cleaning import clean
from tuneoff_platforms.time_limits import SETUP_SHARE

if TYPE_CHECKING:
    from tuneoff.record.run_context import RunContext

RECORD = "ray.json"


class DeferredTermination:
    """Keeps a SIGTERM until `check` is called, which then runs the handler that was there before."""

    def __init__(self) -> None:
        self._before = signal.getsignal(signal.SIGTERM)
        self._came = False

    def check(self) -> None:
        """Call the former handler if a SIGTERM came since; in the lifecycle it raises."""
        if self._came and callable(self._before):
            self._came = False
            self._before(signal.SIGTERM, None)

    @contextlib.contextmanager
    def in_force(self) -> Iterator[None]:
        """Defer for a block; main thread only. At its end, whatever it raised, the former handler is back and is called."""
        self._before = signal.signal(signal.SIGTERM, lambda number, frame: setattr(self, "_came", True))
        try:
            yield
        finally:
            signal.signal(signal.SIGTERM, self._before)
            self.check()


@contextlib.contextmanager
def kept_handler() -> Iterator[None]:
    """Put the handler of SIGTERM back after a block in which Ray replaces it by its own, which exits."""
    before = signal.getsignal(signal.SIGTERM)
    try:
        yield
    except SystemExit:
        if callable(before):
            before(signal.SIGTERM, None)
        raise
    finally:
        signal.signal(signal.SIGTERM, before)


def start_ray(context: RunContext, load: Callable[[], Any]) -> None:
    """Start this run's Ray here: one CPU token per slot, no dashboard, everything on loopback; SIGTERM stays ours.

    `load` imports Ray and returns its module; it is called when the environment is prepared, and not before.

    Raises:
        InfrastructureError: it did not start.
    """
    folder = _folder(context)
    record: dict[str, Any] = {"temporary_folder": str(folder), "reuse_actors": True}
    write_record(context, record)  # before anything exists that must be removed
    record["environment"] = prepare_environment()
    os.environ[MARK] = context.execution_id
    workers = context.spec.experiment.workers
    arguments = {"num_cpus": workers.count, "num_gpus": len(workers.devices), "include_dashboard": False}
    record["init"] = {**arguments, "address": "local"}
    write_record(context, record)
    ray = load()
    seconds = SETUP_SHARE * context.spec.experiment.timeouts.deploy_seconds
    try:
        with kept_handler(), patient_start(seconds):
            ray.init(address="local", log_to_driver=False, logging_level="ERROR", _temp_dir=str(folder), **arguments)
    except (TypeError, ValueError):  # an argument
        raise
    except Exception as error:  # of many classes: one of its processes was not there in time, or ended
        words = next(iter(str(error).strip().splitlines()), type(error).__name__)
        raise InfrastructureError(
            f"Ray must start on this machine within {seconds:g} s, but {words}; see its logs below {folder}, or raise "
            "timeouts.deploy_seconds"
        ) from error


def stop_ray(context: RunContext) -> None:
    """Shut this run's Ray down, end what is left of its processes, and remove its folder. Works in a fresh process too.

    After a killed coordinator or raylet Ray's agents live on for a minute, under titles that name no folder and may have
    written over the mark in their environment; but their logs are in the folder. Never by name: other runs of Ray may share
    the machine.

    Raises:
        StepError: a process or the folder could not be removed.
    """
    record = read_record(context)
    if record is None:
        return
    shut_down()
    folder = _folder(context)
    if record["temporary_folder"] != str(folder):  # of a run whose own temporary folder is gone, or of nobody
        return
    with contextlib.ExitStack() as held:
        above = PrivateFolder.open(folder.parent)
        ray = held.enter_context(above).below(folder.name) if above is not None else None
        leftovers = clean(context.execution_id, held.enter_context(ray) if ray is not None else None)
    if leftovers:
        raise StepError(f"Ray must leave nothing, but left {', '.join(leftovers)}; end it by hand")


def shut_down() -> None:
    """Disconnect this process from Ray, if it is connected, and end a Ray that it started itself."""
    if "ray" in sys.modules:
        import ray

        ray.shutdown()


def _folder(context: RunContext) -> Path:
    return context.temporary_dir / "ray"


def write_record(context: RunContext, record: dict[str, Any]) -> None:
    (context.work_dir / RECORD).write_text(json.dumps(record, indent=1))


def read_record(context: RunContext) -> dict[str, Any] | None:
    try:
        record: dict[str, Any] = json.loads(read_regular_text(context.work_dir / RECORD))
    except FileNotFoundError:
        return None
    except ValueError:  # torn: the coordinator died while it wrote; nothing was started yet, or the first write stands
        return {"temporary_folder": str(_folder(context))}
    return record
