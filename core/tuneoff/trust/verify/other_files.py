"""Do the other files of an execution say what its record says: specification, test result, checkpoint?"""

from __future__ import annotations

import hashlib
from collections.abc import Generator, Iterator, Mapping
from pathlib import Path
from typing import Any

from tuneoff.base.files import open_regular, read_regular
from tuneoff.experiment.trial_context import FILE_NAME as TRIAL_CONTEXT
from tuneoff.record.layout import BEST_CONFIGURATION, SPEC, TEST_RESULT, VERSIONS
from tuneoff.record.run_record import RunRecord
from tuneoff.record.samples.reader import power_of
from tuneoff.record.samples.schema import FILE_NAME as SAMPLES
from tuneoff.run.trial.checkpoint import checkpoint_path
from tuneoff.trust.verify.findings import Fault, differences, load_json, show


def file_faults(folder: Path, record: RunRecord) -> Iterator[Fault]:
    """Yield what the files beside the events contradict; a file that was never made contradicts nothing."""
    if not (folder / SPEC).exists():
        yield Fault(SPEC, "is missing: every run is given one")
    own = {"execution_id": record.execution_id, "run_id": record.run_id, "run": record.specification}
    yield from _whole(folder, SPEC, own, "run.json has")
    yield from _part(folder, TRIAL_CONTEXT, _given_to_trials(record), "run.json has")
    versions = yield from _json(folder, VERSIONS)
    if isinstance(versions, dict):
        yield from _held(VERSIONS, versions, {name: record.versions.get(name) for name in versions}, "run.json has")
    yield from _meter(folder, record)
    tested = record.test
    best = next((trial for trial in record.trials if tested is not None and trial.trial == tested.trial), None)
    if best is not None:
        yield from _whole(folder, BEST_CONFIGURATION, dict(best.configuration), f"trial {best.trial} has")
    else:
        yield from _part(folder, BEST_CONFIGURATION, {}, "")
    names = ("trial", "scores", "checkpoint_sha256", "device") if tested is not None else ()
    yield from _part(folder, TEST_RESULT, {name: getattr(tested, name) for name in names}, "the events say")
    yield from _checkpoint(folder, record)


def _given_to_trials(record: RunRecord) -> dict[str, Any]:
    """Return what the trials' processes had to be given by the specification; paths and limits of this machine are their own."""
    spec = record.run_spec()
    experiment = spec.experiment
    return {
        "execution_id": record.execution_id,
        "workload": experiment.workload.target,
        "workload_options": dict(experiment.workload.options),
        "metric": experiment.objective.metric,
        "mode": experiment.objective.mode,
        "epochs": experiment.budget.epochs_per_trial,
        "trials": experiment.budget.trials,
        "epochs_total": experiment.budget.epochs_total,
        "wall_clock_seconds": experiment.budget.wall_clock_seconds,
        "slots": experiment.workers.count,
        "threads": experiment.workers.threads,
        "seed": spec.seed,
    }


def _meter(folder: Path, record: RunRecord) -> Iterator[Fault]:
    """Hold what the record's environment says of the meter to the first line of the samples."""
    if "power" in record.environment:
        for difference in differences(record.environment["power"], power_of(folder), "environment.power"):
            text = f"run.json has {difference.path} {show(difference.stored)}, the samples say {show(difference.recomputed)}"
            yield Fault(SAMPLES, text)


def _checkpoint(folder: Path, record: RunRecord) -> Iterator[Fault]:
    """Hold the checkpoint that was tested to the digest that the test took of it."""
    if record.test is None or record.test.checkpoint_sha256 is None:
        return
    path = checkpoint_path(folder, record.test.trial)
    name = path.relative_to(folder).as_posix()
    try:
        with open_regular(path) as file:
            found = hashlib.file_digest(file, "sha256").hexdigest()
    except FileNotFoundError:
        yield Fault(name, "is missing: the test scored it")
    except OSError as error:
        yield Fault(name, f"cannot be read: {error.strerror}")
    else:
        if found != record.test.checkpoint_sha256:
            yield Fault(name, f"its SHA-256 is {found[:12]}, but the test scored {record.test.checkpoint_sha256[:12]}")


def _whole(folder: Path, file: str, own: Mapping[str, Any], says: str) -> Iterator[Fault]:
    """Yield where a file's object is not what it must be by another source."""
    found = yield from _json(folder, file)
    if isinstance(found, dict):
        yield from _held(file, found, own, says)


def _part(folder: Path, file: str, own: Mapping[str, Any], says: str) -> Iterator[Fault]:
    """Do as `_whole`, of those values alone that the other source has."""
    found = yield from _json(folder, file)
    if isinstance(found, dict):
        yield from _held(file, {name: found.get(name) for name in own}, own, says)


def _held(file: str, found: Mapping[str, Any], own: Mapping[str, Any], says: str) -> Iterator[Fault]:
    for difference in differences(found, own):
        yield Fault(file, f"{difference.path} is {show(difference.stored)}, {says} {show(difference.recomputed)}")


def _json(folder: Path, name: str) -> Generator[Fault, None, Any]:
    """Return a JSON file's value, None where there is no such file or it cannot be read (which is yielded)."""
    try:
        value, twice = load_json(read_regular(folder / name))
        for key in twice:
            yield Fault(name, f"{key!r} stands twice in one object: readers take one or the other")
        return value
    except FileNotFoundError:
        return None
    except OSError as error:
        yield Fault(name, f"cannot be read: {error.strerror}")
    except ValueError as error:
        yield Fault(name, f"is no JSON: {error}")
    return None
