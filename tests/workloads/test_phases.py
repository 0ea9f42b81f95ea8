"""The multilayer perceptron counts its images, and times its phases where it is asked to, without another result."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from tuneoff.base import phases
from tuneoff.base.phases import PHASES
from tuneoff.errors import ExperimentError
from tuneoff_workloads.mnist_mlp import MnistMlp

Load = Callable[..., MnistMlp]


def epoch_of(workload: MnistMlp) -> tuple[int | None, dict[str, int], int]:
    """Return the images counted, the phases in ns, and the whole in ns of one epoch."""
    began = time.monotonic_ns()
    phases.begin_epoch(began)
    workload.train_epoch(1)
    counted = phases.counted_items()
    workload.validate()
    ended = time.monotonic_ns()
    return counted, phases.phase_times(ended), ended - began


@pytest.mark.parametrize("batch_size", [7, 64, 2000])  # many batches, some, one
def test_phases_fill_the_epoch_and_change_no_result(load: Load, batch_size: int) -> None:
    silent, telling = (load(options={"phases": asked}, batch_size=batch_size) for asked in (False, True))
    count, none, _ = epoch_of(silent)
    assert (count, none) == (1200, {})
    counted, times, whole = epoch_of(telling)
    assert counted == 1200
    assert set(times) == set(PHASES)
    assert 0.6 * whole < sum(times.values()) <= whole
    assert silent.state_dict() == telling.state_dict()


@pytest.mark.parametrize("value", [1, "yes", None])
def test_phases_are_asked_for_by_true_or_false(value: object) -> None:
    with pytest.raises(ExperimentError, match=f"`phases` must be true or false, but got {value!r}"):
        MnistMlp({"phases": value})
