"""Bounds of a job's energy, alone and beside an accelerator with a meter of its own; idle energy without a window for it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from builders.event_logs import ns, run_b
from tuneoff.measure.attribution.account import EnergyAccount
from tuneoff.measure.attribution.slots import EnergyPiece
from tuneoff.measure.energy import energy_metrics
from tuneoff.measure.slots import slot_window
from tuneoff.measure.spans import NO_BEST
from tuneoff.record.metric_value import MetricValue
from tuneoff.record.run_record import RunRecord
from tuneoff.record.samples.schema import Coefficients

MODEL = Coefficients(joules_per_cpu_second=20.0, watts_per_core=5.0, low=(10.0, 2.5), high=(40.0, 10.0), cpu="x", source="x")


def metrics(run: RunRecord, *pieces: EnergyPiece) -> dict[str, MetricValue]:
    """Return the energies of a run of 57.5 CPU seconds and 104 reserved core seconds, with these pieces outside of the trials."""
    parts = {"idle": pieces, "outside": ()} if slot_window(run) is not None else {"idle": (), "outside": pieces}
    account = EnergyAccount(kind="estimated", source="x", parts=parts, model=MODEL, cpu_seconds=57.5, core_seconds=104.0)
    return energy_metrics(run, account)


def job(*pieces: EnergyPiece) -> tuple[float | None, ...]:
    """Return the energy of a job and its bounds."""
    found = metrics(run_b(), *pieces)
    return tuple(found[f"energy.job{name}"].value for name in ("", "_low", "_high"))


def test_without_an_accelerator_the_bounds_are_the_models() -> None:
    assert job(EnergyPiece(0, ns(52), 1670.0)) == (1670.0, 57.5 * 10 + 104 * 2.5, 57.5 * 40 + 104 * 10)


def test_an_accelerators_energy_is_in_both_bounds_so_that_the_job_lies_between_them() -> None:
    energy, low, high = job(EnergyPiece(0, ns(52), 1670.0), EnergyPiece(0, ns(52), 9000.0))
    assert energy == 10_670.0
    assert low == pytest.approx(835 + 9000)
    assert high == pytest.approx(3340 + 9000)


def test_idle_energy_is_null_and_not_0_where_no_best_trial_ends_the_window_of_idle_figures() -> None:
    whole, pieces = run_b(), (EnergyPiece(ns(5), ns(52), 100.0),)
    failed = replace(whole, best=None)
    assert metrics(whole, *pieces)["energy.idle"].value == 100.0
    found = metrics(failed, *pieces)
    assert (found["energy.idle"].value, found["energy.idle"].reason_if_null) == (None, NO_BEST)
    assert found["energy.idle_share"].reason_if_null == found["energy.idle"].reason_if_null
    assert (found["energy.outside"].value, found["energy.job"].value) == (100.0, 100.0)
