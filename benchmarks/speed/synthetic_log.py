"""Event files of a large run, as a coordinator and two workers would have written them."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

import msgspec

from tuneoff.base import clock
from tuneoff.base.identity import configuration_digest
from tuneoff.record.events import schema

WORKERS = 2
EXECUTION = "synthetic"
MILLISECOND = 1_000_000
START_NS = 3600 * clock.NANOSECONDS  # of the run, on its machine's clock
_encoder = msgspec.json.Encoder()


def events_per_trial(epochs: int) -> int:
    """Return how many events a trial has: submitted, started, loaded, ended, and two per epoch."""
    return 4 + 2 * epochs


def write_log(folder: Path, events: int, epochs: int) -> int:
    """Write the files of a run with about `events` events into `folder` and return how many trials it has."""
    folder.mkdir(parents=True)
    trials = events // events_per_trial(epochs)
    start = START_NS
    _write(folder / "coordinator-100-1.jsonl", _coordinator(start, trials, epochs))
    for slot in range(WORKERS):
        _write(folder / f"worker-{101 + slot}-1.jsonl", _worker(start, slot, trials, epochs))
    return trials


def _write(path: Path, events: Iterator[schema.Event]) -> None:
    with path.open("wb") as file:
        while chunk := list(itertools.islice(events, 10_000)):
            file.write(_encoder.encode_lines(chunk))


def _coordinator(start: int, trials: int, epochs: int) -> Iterator[schema.Event]:
    numbers = itertools.count()
    yield _process(next(numbers), start, "coordinator", 100)
    yield schema.StepStarted(seq=next(numbers), t=start, step="deploy")
    yield schema.StepEnded(seq=next(numbers), t=start + MILLISECOND, step="deploy")
    yield schema.StepStarted(seq=next(numbers), t=start + MILLISECOND, step="setup")
    yield schema.StepEnded(seq=next(numbers), t=start + 2 * MILLISECOND, step="setup")
    yield schema.StepStarted(seq=next(numbers), t=start + 2 * MILLISECOND, step="trial")
    for trial in range(trials):
        moment = _submitted(start, trial, epochs)
        yield schema.TrialSubmitted(seq=next(numbers), t=moment, trial=_name(trial), configuration=_configuration(trial))
    end = _submitted(start, trials + 2 * WORKERS, epochs)
    yield schema.StepEnded(seq=next(numbers), t=end, step="trial")
    yield schema.StepStarted(seq=next(numbers), t=end, step="collect")
    yield schema.BestKnown(seq=next(numbers), t=end + 1, trial=_name(0), value=_loss(0, epochs))
    yield schema.StepEnded(seq=next(numbers), t=end + 2, step="collect")
    yield schema.StepStarted(seq=next(numbers), t=end + 2, step="test")
    yield schema.Tested(seq=next(numbers), t=end + 3, trial=_name(0), scores={"test_loss": 0.5})
    yield schema.StepEnded(seq=next(numbers), t=end + 4, step="test")
    last: tuple[tuple[int, schema.Step], ...] = ((5, "metrics"), (7, "undeploy"))
    for offset, step in last:
        yield schema.StepStarted(seq=next(numbers), t=end + offset, step=step)
        yield schema.StepEnded(seq=next(numbers), t=end + offset + 1, step=step)


def _worker(start: int, slot: int, trials: int, epochs: int) -> Iterator[schema.Event]:
    numbers = itertools.count()
    yield _process(next(numbers), start, "worker", 101 + slot)
    for trial in range(slot, trials, WORKERS):
        name, moment = _name(trial), _submitted(start, trial, epochs) + 100_000
        configuration = _configuration(trial)
        yield schema.TrialStarted(
            seq=next(numbers),
            t=moment,
            trial=name,
            slot=slot,
            configuration=configuration,
            digest=configuration_digest(configuration),
            seed=trial,
            threads=1,
        )
        yield schema.TrialLoaded(seq=next(numbers), t=moment + 50_000, trial=name)
        for epoch in range(1, epochs + 1):
            moment += MILLISECOND
            yield schema.Epoch(
                seq=next(numbers),
                t=moment,
                trial=name,
                epoch=epoch,
                metrics={"train_loss": _loss(trial, epoch), "validation_loss": _loss(trial, epoch), "validation_accuracy": 0.9},
                train_ns=700_000,
                validate_ns=200_000,
            )
            yield schema.Reported(seq=next(numbers), t=moment + 50_000, trial=name, epoch=epoch)
        yield schema.TrialEnded(
            seq=next(numbers),
            t=moment + 100_000,
            trial=name,
            state="completed",
            epochs=epochs,
            cpu_ns=epochs * MILLISECOND,
            peak_rss_bytes=50_000_000,
        )


def _process(seq: int, start: int, role: str, pid: int) -> schema.Process:
    return schema.Process(
        seq=seq,
        t=start,
        version=schema.SCHEMA_VERSION,
        role=role,
        pid=pid,
        host="synthetic",
        boot_id=clock.boot_id(),
        execution_id=EXECUTION,
        anchor_monotonic_ns=start,
        anchor_wall_ns=1_700_000_000 * clock.NANOSECONDS,
        anchor_width_ns=100,
        process_started_ns=start - 10 * MILLISECOND,
    )


def _submitted(start: int, trial: int, epochs: int) -> int:
    return start + 3 * MILLISECOND + trial // WORKERS * (epochs + 1) * MILLISECOND


def _name(trial: int) -> str:
    return f"t{trial:05d}"


def _configuration(trial: int) -> dict[str, float | int]:
    return {"x": 1e-4 + (trial * 7919 % 9973) / 1e4, "y": (trial % 1000) / 1000, "k": trial % 10}


def _loss(trial: int, epoch: int) -> float:
    return 1.0 / (1 + epoch) + (trial % 997) / 1e3
