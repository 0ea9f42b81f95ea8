from __future__ import annotations

import statistics
from collections import Counter
from pathlib import Path
from typing import Any

import numpy
import pandas
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tuneoff
from builders.odd_folders import export_to
from tuneoff.tell.frames.load import STATES, summary

FIELDS: dict[str, st.SearchStrategy[Any]] = {
    "label": st.sampled_from(["serial", "optuna", "ray-tune"]),
    "sampler": st.sampled_from(["random", "tpe"]),
    "is_selected": st.booleans(),
    "state": st.sampled_from(STATES),
    "value": st.one_of(st.none(), st.floats(-10, 10)),
    "started_seconds": st.one_of(st.none(), st.just(1.0)),
    "busy_seconds": st.floats(0, 10),
}
ROWS = st.fixed_dictionaries(FIELDS)


def frame_of(rows: list[dict[str, Any]]) -> pandas.DataFrame:
    frame = pandas.DataFrame(rows, columns=list(FIELDS))
    numbers = dict.fromkeys(("value", "started_seconds", "busy_seconds"), "float64")
    keys = dict.fromkeys(("label", "sampler", "state"), "category")
    return frame.astype({**numbers, **keys, "is_selected": "bool"})


def by_hand(rows: list[dict[str, Any]]) -> dict[tuple[str, str], dict[str, float]]:
    """Return what a summary must be, one trial after the other."""
    groups: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for row in rows:
        if row["is_selected"]:
            groups.setdefault((row["label"], row["sampler"]), []).append(row)
    found = {}
    for key, members in groups.items():
        states = Counter(row["state"] for row in members)
        line: dict[str, float] = {"trials": len(members), **{state: states[state] for state in STATES}}
        line["failures"] = states["failed"] + states["timed_out"]
        line["success_share"] = (states["completed"] + states["pruned"]) / len(members)
        values = [row["value"] for row in members if row["state"] == "completed" and row["value"] is not None]
        busy = [row["busy_seconds"] for row in members if row["started_seconds"] is not None]
        for name, numbers in (("value_{}", values), ("busy_{}_seconds", busy)):
            quartiles = [numpy.nan] * 3 if not numbers else numbers * 3 if len(numbers) == 1 else quartiles_of(numbers)
            line.update({name.format(which): value for which, value in zip(("q1", "median", "q3"), quartiles, strict=True)})
        found[key] = line
    return found


def quartiles_of(numbers: list[float]) -> list[float]:
    return statistics.quantiles(numbers, n=4, method="inclusive")


@settings(max_examples=30)
@given(st.lists(ROWS, max_size=40))
def test_a_summary_is_what_counting_trial_by_trial_gives(rows: list[dict[str, Any]]) -> None:
    table = summary(frame_of(rows), ("label", "sampler"))
    expected = by_hand(rows)
    assert {*table.index} == {*expected}
    for key, row in zip(table.index, table.to_dict("records"), strict=True):
        assert row == pytest.approx(expected[key], nan_ok=True)


def test_replaced_executions_and_warm_ups_are_left_out(odd: Path) -> None:
    for _ in range(2):
        table = tuneoff.load(odd).summary()
        ((key, row),) = table.iterrows()
        assert key == ("serial", "random")
        assert row["trials"] == 15  # of seeds 0, 1, 3, 4 and 8, three each
        assert (row["failed"], row["failures"]) == (1, 1)
        export_to(odd)


def test_groups_are_in_the_order_of_the_plan_and_by_any_column(results: Path) -> None:
    frames = tuneoff.load(results)
    assert [*frames.summary().index] == [("serial", "random"), ("optuna", "random")]
    by_seed = frames.summary(by=["seed"])
    assert by_seed.index.name == "seed"
    assert by_seed["trials"].to_dict() == {0: 6, 1: 3}
    by_slot = frames.summary(by=["label", "slot"])
    assert by_slot["trials"].sum() == 9
    trials = frames.trials
    assert frames.summary(by=["value"])["trials"].to_dict() == trials[trials["is_selected"]]["value"].value_counts().to_dict()


def test_a_group_that_is_missing_is_a_group(odd: Path) -> None:
    table = tuneoff.load(odd).summary(by=["cause"])
    assert table["trials"].sum() == 15
    assert [*table.index.isna()].count(True) == 1


def test_no_trials_are_an_empty_summary(odd: Path) -> None:
    frame = tuneoff.load(odd).trials
    table = summary(frame[frame["seed"] == 2], ("label", "sampler"))
    assert len(table) == 0
    assert "value_median" in table
