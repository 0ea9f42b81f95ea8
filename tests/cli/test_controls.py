"""`tuneoff controls` on stored runs: its answers, its exit codes, its JSON, and the end of `compare`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from builders.made_runs import METRIC, Curve, made_run, made_spec, planned, results_of, write_results
from command_line import Call
from tuneoff.experiment.spec import RunSpec
from tuneoff.record.run_record import RunRecord
from tuneoff.record.store import write_run

CURVES: list[Curve] = [[{METRIC: 0.5}], [{METRIC: 0.75}]]


def stored(folder: Path, runs: Sequence[tuple[RunSpec, list[Curve], float]]) -> Path:
    """Write a results folder with these runs and their plan."""
    records = [made_run(spec, curves, quality) for spec, curves, quality in runs]
    return write_results(
        results_of(records, planned(records), folder=folder, analysis={"confidence": 0.95, "quality_margin": 0.01})
    )


def fixed(folder: Path, *, last: float) -> Path:
    specs = [made_spec(adapter, sampler="fixed", listed=2) for adapter in ("serial", "optuna")]
    return stored(folder, [(specs[0], CURVES, 0.9), (specs[1], [CURVES[0], [{METRIC: last}]], 0.9)])


def test_equal_runs_end_with_0(call: Call, tmp_path: Path) -> None:
    answer = call("controls", fixed(tmp_path / "r", last=0.75))
    assert (answer.code, answer.err) == (0, "")
    head = "Same configurations (sampler fixed): EQUAL: all values of 2 frameworks are equal bit for bit."
    assert answer.out.splitlines()[0] == head
    assert "Interference (sampler fixed)" in answer.out
    assert answer.out.rstrip().endswith(str(tmp_path / "r"))


def test_one_planted_value_ends_with_1_and_is_named(call: Call, tmp_path: Path) -> None:
    results = fixed(tmp_path / "r", last=0.7500000000000001)
    answer = call("controls", results)
    assert answer.code == 1
    assert f"epoch 1, {METRIC}: 0.75 (serial), 0.7500000000000001 (optuna)" in answer.out
    answer = call("controls", results, "--json")
    found = json.loads(answer.out)
    assert (answer.code, found["exit_code"], found["contradicts"]) == (1, 1, True)
    (difference,) = found["same_configurations"][0]["differences"]
    assert difference["values"] == {"0.75": ["serial"], "0.7500000000000001": ["optuna"]}


@pytest.mark.parametrize(("shift", "code"), [(0.0, 0), (0.05, 1)])
def test_quality_outside_the_margin_ends_with_1(call: Call, tmp_path: Path, shift: float, code: int) -> None:
    pytest.importorskip("scipy")
    runs = []
    for seed in range(8):
        for adapter, more in (("serial", 0.0), ("optuna", shift)):
            runs.append((made_spec(adapter, seed=seed), CURVES, 0.9 + more + 0.001 * (seed * adapter.count("a") % 4)))
    answer = call("controls", stored(tmp_path / "r", runs))
    assert answer.code == code
    assert ("WARNING: serial and optuna" in answer.out) == bool(code)


def test_a_folder_with_nothing_to_compare_says_so(call: Call, tmp_path: Path) -> None:
    answer = call("controls", stored(tmp_path / "r", [(made_spec("serial"), CURVES, 0.9)]))
    assert answer.code == 0
    assert answer.out.startswith("nothing to compare")


def test_the_records_are_those_that_stand(call: Call, tmp_path: Path) -> None:
    results = fixed(tmp_path / "r", last=0.7500000000000001)
    spec = made_spec("optuna", sampler="fixed", listed=2)
    again: RunRecord = made_run(spec, CURVES, 0.9, execution="2")
    again = replace(again, environment={"repeat": {"number": 1, "because": {}}})
    path = results / "runs" / again.run_id / again.execution_id
    path.mkdir()
    write_run(path, again)
    assert call("controls", results).code == 0
