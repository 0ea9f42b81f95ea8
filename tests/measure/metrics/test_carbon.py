"""CO2e and carbon intensity: energy in pieces meets an intensity that changes."""

from __future__ import annotations

import dataclasses
import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders.event_logs import ns, run_a, run_b
from tuneoff.experiment.accounting.declared import Accounting, Intensity
from tuneoff.measure.attribution.account import EnergyAccount
from tuneoff.measure.attribution.pieces import EnergyPiece, split
from tuneoff.measure.carbon import carbon_metrics, emission
from tuneoff.record.metric_value import MetricValue
from tuneoff.record.run_record import RunRecord
from tuneoff.record.samples.reader import Evidence

KWH = 3.6e6


def piece(start: float, end: float, watts: float) -> EnergyPiece:
    return EnergyPiece(ns(start), ns(end), watts * (end - start))


def account_a() -> EnergyAccount:
    """Worked example A: two slots, 40 W while they are busy, 15 W otherwise."""
    return EnergyAccount(
        kind="derived",
        source="slots metered one by one",
        n_samples=352,
        coverage=1.0,
        attempts={("1", 0): (piece(12, 112, 40),), ("2", 0): (piece(12, 72, 40),), ("3", 0): (piece(112, 162, 40),)},
        parts={
            "idle": (piece(10, 12, 30), piece(72, 112, 15), piece(112, 162, 15), piece(162, 164, 30)),
            "outside": (piece(0, 10, 30), piece(164, 176, 30)),
        },
    )


def series(*values: float, run: RunRecord, at: tuple[float, ...] = (0, 112), end: float = 176) -> Intensity:
    assert run.clock is not None
    start = run.clock.start_wall_ns
    return Intensity(kind="series", values=values, times=tuple(start + ns(t) for t in at), end=start + ns(end), source="grid.csv")


def metrics(
    intensity: Intensity | None, account: EnergyAccount | None = None, run: RunRecord | None = None
) -> dict[str, MetricValue]:
    accounting = Accounting(intensity=intensity, intensity_reason="none was asked for")
    return carbon_metrics(run or run_a(), Evidence(accounting=accounting), account or account_a())


def test_the_steps_have_what_was_used_in_them_and_sum_to_the_job() -> None:
    found = metrics(series(200, 400, run=run_a()))
    steps = {name.rpartition(".")[2]: value.value or 0.0 for name, value in found.items() if name.startswith("carbon.step.")}
    assert steps["deploy"] == pytest.approx(300 * 200 / KWH)
    assert steps["trial"] == pytest.approx(((4000 + 2400 + 600) * 200 + (2000 + 750) * 400) / KWH)
    assert len(steps) == 7
    assert sum(steps.values()) == pytest.approx(found["carbon.job"].value)


def test_all_attempts_of_a_trial_count_for_it() -> None:
    run = run_b()
    attempts = {
        ("1", 0): (piece(8, 28, 20),),
        ("2", 0): (piece(8, 9, 10),),
        ("2", 1): (piece(12, 32, 10),),
        ("3", 0): (piece(32, 43, 5),),
    }
    account = EnergyAccount(attempts=attempts, parts={})
    found = metrics(series(100, 500, run=run, at=(0, 12), end=60), account, run)
    second = (10 * 100 + 200 * 500) / 210
    assert found["carbon.trial_intensity"].value == pytest.approx(((4 * 100 + 16 * 500) / 20 + second + 500) / 3)


@pytest.mark.parametrize(("at", "end"), [((1.0, 112.0), 176.0), ((0.0, 112.0), 175.0)])
def test_a_series_that_does_not_cover_the_run_gives_nothing_and_says_so(at: tuple[float, ...], end: float) -> None:
    found = metrics(series(200, 400, run=run_a(), at=at, end=end))
    assert {value.value for value in found.values()} == {None}
    reasons = {value.reason_if_null for value in found.values()}
    since, until = f"2023-11-14T22:13:{20 + at[0]:02.0f}Z", f"2023-11-14T22:16:{end - 160:02.0f}Z"
    assert reasons == {f"the series covers {since} to {until}, the run ran 2023-11-14T22:13:20Z to 2023-11-14T22:16:16Z"}


def test_a_run_whose_start_is_not_known_has_no_place_in_a_series_but_meets_a_constant() -> None:
    run = dataclasses.replace(run_a(), clock=None)
    found = metrics(series(200, 400, run=run_a()), run=run)
    assert "the run's start on the wall clock is not known" in str(found["carbon.job"].reason_if_null)
    assert metrics(Intensity(kind="constant", values=(100.0,)), run=run)["carbon.job"].value == pytest.approx(10_530 / KWH * 100)


@given(cuts=st.lists(st.floats(0, 176), max_size=5), watts=st.floats(0.1, 500))
def test_cutting_a_piece_changes_nothing(cuts: list[float], watts: float) -> None:
    run = run_a()
    assert run.clock is not None
    intensity, start = series(200, 400, 100, run=run, at=(0, 50, 112)), run.clock.start_wall_ns
    edges = sorted({0.0, 176.0, *cuts})
    pieces = [piece(first, last, watts) for first, last in itertools.pairwise(edges)]
    whole = emission([piece(0, 176, watts)], intensity, start)
    cut = emission(pieces, intensity, start)
    assert cut.grams == pytest.approx(whole.grams, rel=1e-6)
    halves = split(pieces, [(0, ns(33.3)), (ns(33.3), ns(176))])
    assert sum(emission(half, intensity, start).grams for half in halves) == pytest.approx(whole.grams, rel=1e-6)
    with pytest.raises(ValueError, match="must cover each piece of energy"):
        emission([piece(170, 177, watts)], intensity, start)


def test_a_piece_is_cut_at_the_edges_of_windows_and_what_lies_between_them_is_in_none() -> None:
    pieces = [EnergyPiece(0, 100, 50.0), EnergyPiece(30, 30, 7.0), EnergyPiece(10, 20, 1.0), EnergyPiece(90, 130, 40.0)]
    assert split(pieces, [(10, 30), (30, 60), (80, 120)]) == [
        [EnergyPiece(10, 30, 10.0), EnergyPiece(10, 20, 1.0)],
        [EnergyPiece(30, 60, 15.0), EnergyPiece(30, 30, 7.0)],
        [EnergyPiece(80, 100, 10.0), EnergyPiece(90, 120, 30.0)],
    ]
    assert split(pieces, []) == []
