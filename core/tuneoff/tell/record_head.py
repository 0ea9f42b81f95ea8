"""The head of a record: what decides its place and whether it stands for its run, read without its trials."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import msgspec

from tuneoff.base.files import PLAIN_NAME, read_regular
from tuneoff.base.layout import RECORD
from tuneoff.measure.stored import derived_run, is_of
from tuneoff.record.end import end_bytes, key_of
from tuneoff.record.events.schema import Charged
from tuneoff.record.metric_value import MetricValue
from tuneoff.record.run_record import RunRecord, RunStatus, StepRecord
from tuneoff.record.store import REPEAT, encode, has_key

BEST, JOB_TIME = "quality.validation", "time.jct_without_test"


class _Specification(msgspec.Struct):
    warm_up: bool = False


class _HeadEnvironment(msgspec.Struct):
    repeat: dict[str, Any] | None = None


class _Metrics(msgspec.Struct):
    best: MetricValue | None = msgspec.field(default=None, name=BEST)
    time: MetricValue | None = msgspec.field(default=None, name=JOB_TIME)


class _RecordHead(msgspec.Struct, kw_only=True):
    """The fields of `run.json` that tell how an execution ended; the others, trials above all, are skipped."""

    run_id: str
    execution_id: Annotated[str, msgspec.Meta(pattern=PLAIN_NAME)]
    specification: _Specification
    status: RunStatus
    reason: str | None = None
    charged: Charged | None = None
    started_at: str | None = None
    environment: _HeadEnvironment = msgspec.field(default_factory=_HeadEnvironment)
    steps: tuple[StepRecord, ...] = ()
    metrics: _Metrics = msgspec.field(default_factory=_Metrics)


_decoder = msgspec.json.Decoder(_RecordHead)


def read_head(folder: Path) -> RunRecord:
    """Return how an execution ended: its record without trials, metrics and all that is large.

    Raises:
        ResultsError: as read_run.
    """
    end = end_bytes(folder)
    key = key_of(end)
    try:
        content = read_regular(folder / RECORD)
        head = _head(content) if has_key(content, key) else None
    except (OSError, ValueError, RecursionError):
        head = None
    return head if head is not None and is_of(folder, head) else _head(b"".join(encode(derived_run(folder, end), key)))


def _head(content: bytes) -> RunRecord:
    """Return the head of the record that the text of a `run.json` holds.

    Raises:
        ValueError: it breaks a rule of records.
    """
    head = _decoder.decode(content)
    values = {BEST: head.metrics.best, JOB_TIME: head.metrics.time}
    parts = {
        "specification": {"warm_up": True} if head.specification.warm_up else {},
        "environment": {REPEAT: head.environment.repeat} if head.environment.repeat is not None else {},
        "metrics": {name: value for name, value in values.items() if value is not None},
    }
    return RunRecord(**{**msgspec.structs.asdict(head), **parts})
