"""Values of metrics: their names, kinds and weights, ranges over several rows, and bounds of energy."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace

import pytest

from builders.event_logs import example_a, example_b, ns, run_b
from tuneoff.base.reading import Refused
from tuneoff.experiment.metric_catalogue import check_metric, general_name, metric_names
from tuneoff.measure.attribution.account import EnergyAccount
from tuneoff.measure.attribution.pieces import EnergyPiece
from tuneoff.measure.derived import with_metrics
from tuneoff.measure.energy import energy_metrics
from tuneoff.measure.power.cpu_table import RATIO_HIGH, RATIO_LOW, WeightRange, weight_range
from tuneoff.measure.slots import slot_window
from tuneoff.record.derive import derive
from tuneoff.record.metric_value import Kind, MetricValue, metric_value, weakest
from tuneoff.record.run_record import RunRecord
from tuneoff.record.samples.schema import Coefficients


@pytest.mark.parametrize(
    ("kinds", "expected"),
    [
        (("measured",), "measured"),
        (("measured", "derived"), "derived"),
        (("declared", "derived"), "declared"),
        (("measured", "estimated", "declared"), "estimated"),
    ],
)
def test_a_product_has_the_weakest_kind_of_its_factors(kinds: tuple[Kind, ...], expected: Kind) -> None:
    assert weakest(*kinds) == weakest(*reversed(kinds)) == expected


@pytest.mark.parametrize("value", [float("inf"), float("-inf"), float("nan")])
def test_a_value_that_overflowed_is_missing_and_takes_no_other_with_it(value: float) -> None:
    found = metric_value(value, "USD", kind="declared", source="prices", n_samples=3, coverage=0.5)
    assert (found.value, found.unit, found.kind, found.source) == (None, "USD", "declared", "prices")
    assert found.reason_if_null == f"it is {value}: the values that it is computed from are too large"
    with pytest.raises(ValueError, match="must be finite"):  # a record cannot hold it
        MetricValue(value=value, unit="USD")


def differences(computed: Iterable[str], listed: Iterable[str]) -> set[str]:
    """Return the names that only one side has."""
    return {general_name(name) for name in computed} ^ set(listed)


def computed_names() -> set[str]:
    (log_a, spec_a), (log_b, spec) = example_a(), example_b()
    workers = replace(spec.experiment.workers, devices=tuple(range(spec.experiment.workers.count)))
    goal = -1e9 if spec.experiment.objective.mode == "max" else 1e9
    objective = replace(spec.experiment.objective, goal=goal, goals={"light": goal}, stop=True)
    # with metrics of devices and of goals too
    spec_b = replace(spec, experiment=replace(spec.experiment, workers=workers, objective=objective))
    return {name for log, spec in ((log_a, spec_a), (log_b, spec_b)) for name in with_metrics(derive(log.pairs(), spec)).metrics}


def test_the_listed_names_are_the_computed_ones() -> None:
    assert differences(computed_names(), metric_names()) == set()
    for name in computed_names():
        check_metric(name)


def test_a_metric_that_is_not_listed_and_one_that_is_not_computed_are_found() -> None:
    assert differences(computed_names() | {"energy.joules"}, metric_names()) == {"energy.joules"}
    assert differences(computed_names(), (*metric_names(), "cost.total")) == {"cost.total"}


@pytest.mark.parametrize("name", ["time.", "slots.busy[x]", "time.jct[0]", "no.such.metric"])
def test_other_names_are_none(name: str) -> None:
    with pytest.raises(Refused, match=re.escape(f"no metric named {name!r}")):
        check_metric(name)


WEIGHTS = weight_range(())
ENDS = (RATIO_LOW, RATIO_HIGH)


def test_an_empty_range_is_refused() -> None:
    with pytest.raises(ValueError, match="but got"):
        WeightRange(low=0.5, high=0.1, servers="x")


def test_the_range_without_a_row_is_that_of_servers_since_2023() -> None:
    assert (round(WEIGHTS.low, 3), round(WEIGHTS.high, 3)) == (0.190, 0.937)  # worked out from the results by themselves
    assert WEIGHTS.servers == "287 servers published since 2023"


def test_of_several_rows_the_widest_range_is_taken_with_all_their_servers() -> None:
    run = derive([], example_a()[1])
    low, high = (
        replace(run, metrics={name: metric_value(end, "ratio", source=servers) for name, end in zip(ENDS, ends, strict=True)})
        for servers, *ends in (("a", 0.1, 0.3), ("b", 0.2, 0.5))
    )
    assert weight_range([low, high, low]) == WeightRange(low=0.1, high=0.5, servers="a and b")
    assert weight_range([run]) == WEIGHTS


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


def test_an_accelerators_energy_is_in_both_bounds_so_that_the_job_lies_between_them() -> None:
    energy, low, high = job(EnergyPiece(0, ns(52), 1670.0), EnergyPiece(0, ns(52), 9000.0))
    assert energy == 10_670.0
    assert low == pytest.approx(835 + 9000)
    assert high == pytest.approx(3340 + 9000)
