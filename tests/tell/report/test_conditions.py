"""What stands beside figures because it moves them: the limit of processors, and what an adapter changed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from builders.made_results import Entry, results, steady
from builders.made_runs import made_run, made_spec, results_of
from tuneoff.judge.answers.answers_json import to_json
from tuneoff.judge.answers.compute import answers
from tuneoff.judge.results import Results
from tuneoff.judge.summary_rows import notes, summary_rows
from tuneoff.record.run_record import RunRecord
from tuneoff.registry import list_adapters
from tuneoff.tell.report.export_rows import run_row

FREE, PINNED = {"cpus": "none (declared, not enforced)"}, {"cpus": "affinity", "processors": [[0], [1]]}
QUOTA = {"cpus": "cgroup v2", "cpu_quota": 0.5}
CHANGED = {"changed_defaults": ["the lock is flock"], "long_lived_workers": True}
OWN_PROCESSES = {"changed_defaults": [], "long_lived_workers": False}


def run(adapter: str, limits: Mapping[str, Any], declared: Mapping[str, Any] = CHANGED, seed: int = 0) -> RunRecord:
    return made_run(made_spec(adapter, seed=seed), [], environment={"limits": dict(limits), "adapter": dict(declared)})


def said(*runs: RunRecord) -> list[str]:
    """Return the lines below the table of the runs that speak of conditions."""
    words = ("processors", "changed against", "process per trial", "is told")
    return [line for line in notes(summary_rows(results_of(runs))) if any(word in line for word in words)]


def in_memory(limits: Mapping[str, Mapping[str, Any]]) -> Results:
    """Return the results of adapters whose runs had these limits."""
    made = results(Entry(adapter=name, draw=steady(key=name)) for name in limits)
    standing = {}
    for run_id, record in made.standing.items():
        adapter = record.run_spec().adapter
        standing[run_id] = replace(record, environment={"limits": dict(limits[adapter]), "adapter": CHANGED})
    return replace(made, standing=standing)


def test_the_limit_that_all_runs_had_is_said_once() -> None:
    assert said(run("a", FREE, {}), run("b", FREE, {})) == ["Limit of a slot's processors: none (declared, not enforced)."]


def test_limits_that_differ_are_said_with_those_who_had_them() -> None:
    (line,) = said(run("a", FREE, {}), run("b", QUOTA, {}), run("c", {"cpus": "container"}, {}), run("d", FREE, {}))
    assert "a, d: none" in line
    assert "b: quota of 0.5 processors (cgroup v2)" in line
    assert "c: container" in line


def test_what_an_adapter_changed_stands_beside_its_figures_and_so_does_a_process_per_trial() -> None:
    changed, own = said(run("a", {}, CHANGED), run("b", {}, OWN_PROCESSES), run("c", {}, {}))
    assert changed.startswith("a ")
    assert "the lock is flock" in changed
    assert own.startswith("b ")


def test_of_which_epochs_each_framework_is_told_is_one_line() -> None:
    told = [run(name, {}, {"reports": kind}) for name, kind in (("a", "none"), ("b", "at_end"), ("c", "at_end"))]
    (line,) = said(*told)
    assert line == "Epochs of which a framework is told: a: none; b, c: its best one, when a trial ends."
    assert said(*told[:1]) == ["Epochs of which a framework is told: none."]


def test_a_record_that_does_not_say_its_limit_is_not_called_one_without_a_limit() -> None:
    assert said(run("a", {}, {})) == []
    assert run_row(run("a", {}), True)["cpu_limit"] is None
    assert run_row(run("a", PINNED), True)["cpu_limit"] == "affinity"


def test_the_report_says_it_in_json() -> None:
    found = answers(in_memory({"a": FREE, "b": FREE}))
    groups = json.loads(json.dumps(to_json(found)))["groups"]
    assert [group["cpu_limits"] for group in groups] == [["none (declared, not enforced)"]] * 2
    assert [group["changed_defaults"] for group in groups] == [["the lock is flock"]] * 2
    assert [group["process_per_trial"] for group in groups] == [False, False]


@pytest.mark.parametrize(("other", "limited_alike"), [(FREE, True), (PINNED, False), ({}, True)])
def test_what_was_not_limited_alike_is_a_limit_of_what_can_be_concluded(other: Mapping[str, Any], limited_alike: bool) -> None:
    found = [text for text in answers(in_memory({"a": FREE, "b": other})).limits if "processors" in text]
    assert len(found) == (0 if limited_alike else 1)


def test_every_adapter_of_a_framework_declares_what_it_changes() -> None:
    declared = {
        listing.plugin.name: listing.capabilities.changed_defaults
        for listing in list_adapters()
        if listing.capabilities is not None
    }
    assert {name for name, texts in declared.items() if texts} >= {"serial", "optuna", "ray-tune", "syne-tune", "katib"}
    assert all(isinstance(texts, tuple) for texts in declared.values())
