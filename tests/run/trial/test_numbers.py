"""What a training may give as a number, and how everything else is refused: with metric, type and way out, and no address."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from trial_runs import events_of, trial_context
from tuneoff.base.numbers import described_value, number_of
from tuneoff.record.events import schema
from tuneoff.run.trial.run_trial import Decision, run_trial
from tuneoff.workload import Configuration

NUMBERS: dict[str, Callable[[], Any]] = {
    "float": lambda: 0.5,
    "float16": lambda: np.float16(0.5),
    "float32": lambda: np.nanmean(np.array([0.25, 0.75], np.float32)),
    "float64": lambda: np.float64(0.5),
    "longdouble": lambda: np.longdouble("0.5"),
    "int": lambda: 1,
    "int8": lambda: np.int8(1),
    "uint64": lambda: np.uint64(1),
    "array": lambda: np.array(0.5),
    "masked": lambda: np.ma.array(0.5),
    "Decimal": lambda: Decimal("0.5"),
    "Fraction": lambda: Fraction(1, 2),
}
OTHERS: dict[str, tuple[Callable[[], Any], str]] = {
    "None": (lambda: None, "None"),
    "str": (lambda: "0.5", "the str '0.5'"),
    "bytes": (lambda: b"0.5", "a value of type bytes"),
    "bool": (lambda: True, "the bool True"),
    "numpy.bool": (lambda: np.bool_(True), "type numpy.bool"),
    "array of one": (lambda: np.array([0.5]), "type numpy.ndarray of shape (1,)"),
    "array of two": (lambda: np.array([0.5, 1]), "type numpy.ndarray of shape (2,)"),
    "tuple": (lambda: (0.5, "history", object()), "a value of type tuple of 3"),
    "object": (object, "a value of type object"),
    "complex": (lambda: 0.5 + 0j, "the complex (0.5+0j)"),
    "complex64": (lambda: np.complex64(0.5), "type numpy.complex64"),
    "date": (lambda: np.datetime64(1, "ns"), "type numpy.datetime64"),
    "huge": (lambda: 10**400, "an int of 1329 bits"),
    "enormous": (lambda: 10**5000, "an int of 16610 bits"),
    "signalling": (lambda: Decimal("sNaN"), "a value of type decimal.Decimal"),
    "function": (lambda: number_of, "a value of type function"),
}
VALUES = {**NUMBERS, **{name: make for name, (make, _) in OTHERS.items()}}


def train(configuration: Configuration) -> Iterator[dict[str, Any]]:
    yield {"loss": VALUES[configuration["kind"]](), "other": VALUES[configuration["other"]]()}


def cause_of(folder: Path, kind: str, other: str = "float") -> str | None:
    context = trial_context(folder, workload=f"{__name__}:train", epochs=1)
    reports: list[Any] = []

    def report(epoch: int, metrics: Any) -> Decision:
        reports.extend(metrics.values())
        return Decision.CONTINUE

    outcome = run_trial(context, "t0", {"kind": kind, "other": other}, report)
    assert all(type(value) in (int, float) for value in reports)
    assert outcome.state == ("completed" if kind in NUMBERS else "failed")
    return outcome.cause


@pytest.mark.parametrize("kind", NUMBERS)
def test_a_number_is_a_number_whatever_library_made_it(tmp_path: Path, kind: str) -> None:
    assert cause_of(tmp_path, kind) is None
    (epoch,) = events_of(tmp_path, schema.Epoch)
    assert epoch.metrics["loss"] == (1 if "int" in kind else 0.5)
    assert epoch.non_finite is None


@pytest.mark.parametrize("kind", OTHERS)
def test_what_is_not_a_number_is_refused_by_its_type_and_of_another_metric_described(tmp_path: Path, kind: str) -> None:
    (tmp_path / "other").mkdir()
    cause = cause_of(tmp_path, kind) or ""
    assert cause.startswith("loss must be a finite number, but epoch 1 gave ")
    assert cause.endswith("; give float(...) of it")
    assert cause_of(tmp_path / "other", "float", kind) is None
    (epoch,) = events_of(tmp_path / "other", schema.Epoch)
    assert epoch.metrics["other"] is None
    for text in (cause, epoch.non_finite["other"]):
        assert OTHERS[kind][1] in text
        assert "0x" not in text  # no address


def test_tensors_without_dimensions_are_numbers() -> None:
    torch = pytest.importorskip("torch")
    for tensor in (torch.tensor(0.5), torch.tensor(0.5, dtype=torch.bfloat16), torch.tensor(0.5, requires_grad=True) * 1):
        assert number_of(tensor) == 0.5
    assert number_of(torch.tensor(3)) == 3
    for other in (torch.tensor([0.5]), torch.tensor(True), torch.tensor(1j), torch.tensor(0.5, device="meta")):
        assert number_of(other) is None
        assert "torch.Tensor" in described_value(other)


@pytest.mark.parametrize("value", [float("nan"), np.float32("inf"), Decimal("-Infinity")])
def test_what_is_not_finite_is_a_number_all_the_same(value: Any) -> None:
    assert number_of(value) is not None
    assert described_value(value) in ("nan", "inf", "-inf")


def failing(configuration: Configuration) -> float:
    raise ValueError(f"no loader for {object()}")


def test_a_reason_has_no_address_in_memory(tmp_path: Path) -> None:
    context = trial_context(tmp_path, workload=f"{__name__}:failing", epochs=1)
    outcome = run_trial(context, "t0", {"x": 0}, lambda epoch, metrics: Decision.CONTINUE)
    assert (outcome.cause or "").startswith("ValueError: no loader for <object object> (test_numbers.py:")
