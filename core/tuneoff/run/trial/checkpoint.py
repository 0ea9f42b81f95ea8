"""The checkpoint of a trial: one safetensors file, written atomically; no pickle execution."""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from tuneoff.base.identity import canonical_json
from tuneoff.base.layout import CHECKPOINTS
from tuneoff.base.numbers import described_value, number_of
from tuneoff.errors import CheckpointError
from tuneoff.workload import StateTensor, Workload

_KEY = "tuneoff"
_STATE = "the `state_dict` of a workload with `has_state` must return a pair of mappings, tensors by name and texts by name"
_WAY_OUT = "return what the test needs, or set `has_state = False` where the configuration is enough"


class EpochMetrics(NamedTuple):
    """The metrics of an epoch as events have them: what is not a finite number is None, and its text is in `non_finite`."""

    metrics: Mapping[str, float | None]
    non_finite: Mapping[str, str]

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> EpochMetrics:
        numbers = {name: number_of(value) for name, value in values.items()}
        finite = {name: None if number is None or not math.isfinite(number) else number for name, number in numbers.items()}
        return cls(finite, {name: described_value(values[name]) for name, value in finite.items() if value is None})

    @property
    def values(self) -> dict[str, float]:
        """What a framework is told once more."""
        return {name: _number(self.non_finite[name]) if value is None else value for name, value in self.metrics.items()}


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:  # it was not a number before
        return math.nan


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """What was read back: tensors and texts of the workload, and the epoch after which it was written.

    `history`: the metrics of each epoch up to that one; empty where training cannot go on from here.
    """

    tensors: Mapping[str, StateTensor]
    texts: Mapping[str, str]
    epoch: int
    sha256: str
    configuration: Mapping[str, Any]
    history: Sequence[EpochMetrics]


def checkpoint_path(run_dir: Path | str, trial_id: str) -> Path:
    """Return where the best checkpoint of a trial lies."""
    return Path(run_dir) / CHECKPOINTS / f"{trial_id}.safetensors"


def state_of(workload: Workload) -> tuple[Mapping[str, StateTensor], Mapping[str, str]]:
    """Return a workload's tensors and texts.

    Raises:
        CheckpointError: it has none, or what `state_dict` returned is not a pair of mappings.
    """
    state: Any = workload.state_dict()
    is_pair = isinstance(state, tuple) and [isinstance(part, Mapping) for part in state] == [True, True]
    if not is_pair or not any(state):
        is_empty = is_pair or state is None or state == {}
        wrong = "is empty" if is_empty else f"is of the type {type(state).__name__}"
        raise CheckpointError(f"{_STATE}, but that of {type(workload).__name__} {wrong}; {_WAY_OUT}")
    tensors, texts = state
    return tensors, texts


def write_checkpoint(
    path: Path,
    tensors: Mapping[str, StateTensor],
    texts: Mapping[str, str],
    *,
    epoch: int,
    configuration: Mapping[str, Any],
    history: Sequence[EpochMetrics] = (),
) -> None:
    """Write the file under a temporary name, then replace. No fsync: a killed process loses nothing, a host crash may."""
    import numpy as np
    from safetensors.numpy import save_file

    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_suffix(f".{os.getpid()}.tmp")
    # one key: the format keeps several in an order that differs from file to file, and equal content must be equal bytes
    about = {"texts": dict(texts), "epoch": epoch, "configuration": dict(configuration)}
    metadata = {_KEY: canonical_json({**about, "history": [tuple(metrics) for metrics in history]} if history else about)}
    arrays = {name: np.frombuffer(t.data, _NAMES[t.dtype]).reshape(t.shape) for name, t in tensors.items()}
    save_file(arrays, str(temporary), metadata)
    os.replace(temporary, path)


def read_checkpoint(path: Path) -> Checkpoint:
    """Read a checkpoint back.

    Raises:
        CheckpointError: it is missing or unreadable; never a silent restart at epoch 0.
    """
    from safetensors import SafetensorError
    from safetensors.numpy import load

    try:
        content = path.read_bytes()
        tensors = {
            name: StateTensor(dtype=_DTYPES[array.dtype.name], shape=array.shape, data=array.tobytes())
            for name, array in load(content).items()
        }
        header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
        stored = json.loads(header["__metadata__"][_KEY])
        texts, epoch, configuration = stored["texts"], int(stored["epoch"]), dict(stored["configuration"])
        history = tuple(EpochMetrics(*entry) for entry in stored.get("history", ()))
    except (OSError, SafetensorError, ValueError, KeyError, TypeError) as error:
        raise CheckpointError(f"a checkpoint must be readable, but {path} is not: {error}; run the trial again") from error
    sha256 = hashlib.sha256(content).hexdigest()
    return Checkpoint(tensors=tensors, texts=texts, epoch=epoch, sha256=sha256, configuration=configuration, history=history)


_NAMES = {
    "F64": "float64",
    "F32": "float32",
    "F16": "float16",
    "I64": "int64",
    "I32": "int32",
    "I16": "int16",
    "I8": "int8",
    "U8": "uint8",
    "BOOL": "bool",
}
_DTYPES = {name: dtype for dtype, name in _NAMES.items()}
