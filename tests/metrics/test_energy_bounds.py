"""The lower and the upper energy of a job by the model's bounds, alone and beside an accelerator with a meter of its own."""

from __future__ import annotations

import pytest

from event_logs import example_b, ns
from tuneoff.metrics.attribution import EnergyAccount, Piece
from tuneoff.metrics.energy import energy_metrics
from tuneoff.metrics.evidence import NO_EVIDENCE
from tuneoff.records.derive import derive
from tuneoff.samples.schema import Coefficients

MODEL = Coefficients(joules_per_cpu_second=20.0, watts_per_core=5.0, low=(10.0, 2.5), high=(40.0, 10.0), cpu="x", source="x")


def job(*pieces: Piece) -> tuple[float | None, ...]:
    """Return the energy of a job of 57.5 CPU seconds and 104 reserved core seconds, and its bounds."""
    log, spec = example_b()
    account = EnergyAccount(
        kind="estimated", source="x", parts={"idle": pieces}, model=MODEL, cpu_seconds=57.5, core_seconds=104.0
    )
    metrics = energy_metrics(derive(log.pairs(), spec), NO_EVIDENCE, account)
    return tuple(metrics[f"energy.job{name}"].value for name in ("", "_low", "_high"))


def test_without_an_accelerator_the_bounds_are_the_models() -> None:
    assert job(Piece(0, ns(52), 1670.0)) == (1670.0, 57.5 * 10 + 104 * 2.5, 57.5 * 40 + 104 * 10)


def test_an_accelerators_energy_is_in_both_bounds_so_that_the_job_lies_between_them() -> None:
    energy, low, high = job(Piece(0, ns(52), 1670.0), Piece(0, ns(52), 9000.0))
    assert energy == 10_670.0
    assert low == pytest.approx(835 + 9000)
    assert high == pytest.approx(3340 + 9000)
