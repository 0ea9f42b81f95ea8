"""Anytime curves on four clocks, from the worked examples and from made runs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import get_args

import pytest

import tuneoff
from builders.made_results import Entry, results, steady
from builders.made_runs import METRIC, made_run
from builders.present import present
from builders.results_folders import write_examples
from tuneoff.judge.answers.anytime import Clock, curves
from tuneoff.judge.results import Results, read_results
from tuneoff.measure.spans import boundaries
from tuneoff.record.run_record import RunStatus

pytest.importorskip("scipy")


@pytest.fixture(scope="module")
def examples(tmp_path_factory: pytest.TempPathFactory) -> Results:
    folder: Path = tmp_path_factory.mktemp("anytime") / "r"
    write_examples(folder, seeds=range(2))
    return read_results(folder)


def with_values(*values: list[float], status: RunStatus = "done") -> Results:
    """Return results of one adapter; each list is a run's trials, by the value of their last epoch: at 1 ns, 2 ns, ..."""
    made = results([Entry("a", steady())], seeds=range(len(values)))
    records = [
        made_run(record.run_spec(), [[{METRIC: min(of)}] * place + [{METRIC: value}] for place, value in enumerate(of)])
        for record, of in zip(made.records, values, strict=True)
    ]
    if status != "done":
        records = [replace(record, status=status, reason="planted") for record in records]
    return replace(made, records=tuple(records), standing={record.run_id: record for record in records})


def test_a_curve_never_gets_worse_and_moves_on_on_every_clock(examples: Results) -> None:
    found = [curve for curve in curves(examples) if curve.steps]
    assert found
    assert [curve.steps for curve in tuneoff.curves(str(examples.folder)) if curve.steps] == [curve.steps for curve in found]
    for curve in found:
        values = [step.value for step in curve.steps]
        assert values == sorted(values, reverse=curve.group.spec.experiment.objective.mode == "min")
        for clock in get_args(Clock):
            places = [step.at(clock) for step in curve.steps]
            known = [place for place in places if place is not None]
            assert known == sorted(known)
            assert not known or known[-1] <= curve.ends[clock]


def test_energy_at_the_end_of_the_trials_is_that_of_the_parts_before(examples: Results) -> None:
    curve = next(curve for curve in curves(examples) if "kwh" in curve.ends)
    record = curve.record
    parts = [record.metrics[f"energy.step.{part}"].value for part in ("deploy", "setup", "trial")]
    assert curve.ends["kwh"] * 3.6e6 == pytest.approx(sum(part or 0.0 for part in parts))
    costs = [record.metrics[f"cost.step.{part}"].value for part in ("deploy", "setup", "trial")]
    assert curve.ends["usd"] == pytest.approx(sum(cost or 0.0 for cost in costs))


def test_within_a_part_energy_grows_evenly_in_time(examples: Results) -> None:
    curve = next(curve for curve in curves(examples) if "kwh" in curve.ends)
    record = curve.record
    marks = boundaries(record)
    start, end = present(marks.first_submitted_ns), present(marks.last_ended_ns)
    step = curve.steps[0]
    share = (present(step.job_seconds) * 1e9 - start) / (end - start)
    before = sum(record.metrics[f"energy.step.{part}"].value or 0.0 for part in ("deploy", "setup"))
    during = record.metrics["energy.step.trial"].value or 0.0
    assert present(step.kwh) * 3.6e6 == pytest.approx(before + share * during)


def test_a_run_without_energy_has_no_such_clock_and_says_why() -> None:
    (curve,) = curves(with_values([0.5, 0.7]))
    assert set(curve.ends) == {"trials", "seconds"}
    assert curve.reasons == {"kwh": "the run has no energy of its parts", "usd": "the run has no cost of its parts"}
    assert all(step.kwh is None for step in curve.steps)
