"""Blocks that are repeated for reasons of the machine: which, why, which execution stands, and what is counted."""

from __future__ import annotations

import inspect
import json
import math
import signal
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from builders.made_runs import made_run, made_spec, plan_of, planned_run
from tuneoff.cli.main import main
from tuneoff.experiment.plan import Plan
from tuneoff.measure.stored import read_runs
from tuneoff.record.run_record import RunRecord
from tuneoff.record.store import selected_executions
from tuneoff.run import machine
from tuneoff.run.repeats import flagged_blocks, repeat_lines, to_repeat

ADAPTERS, SEEDS = ("serial", "optuna"), (0, 1, 2)
SPECS = {(adapter, seed): made_spec(adapter, seed=seed) for seed in SEEDS for adapter in ADAPTERS}


def made_plan(skipped: Sequence[tuple[str, int]] = ()) -> Plan:
    runs = [
        planned_run(spec, block=seed, skip_reason="why not" if (adapter, seed) in skipped else None)
        for (adapter, seed), spec in SPECS.items()
    ]
    return plan_of(runs)


PLAN = made_plan()


def execution(adapter: str, seed: int, number: int = 0, flags: Sequence[str] = (), **changes: Any) -> RunRecord:
    repeat = {"repeat": {"number": number, "because": {"disturbed": 1}}} if number else {}
    changes = {"environment": repeat, **changes}
    return made_run(SPECS[adapter, seed], [], flags=flags, execution=str(number + 1), **changes)


def all_done() -> list[RunRecord]:
    return [execution(adapter, seed) for adapter, seed in SPECS]


def flagged(records: list[RunRecord], adapter: str, seed: int, *names: str) -> list[RunRecord]:
    marked = execution(adapter, seed, flags=names)
    return [marked if record.run_id == marked.run_id else record for record in records]


def cells(plan: Plan, run_ids: Sequence[str]) -> set[tuple[str, int]]:
    return {(run.spec.adapter, run.spec.seed) for run in plan.runs if run.run_id in run_ids}


def test_a_flagged_run_repeats_all_runs_of_its_seed() -> None:
    found = to_repeat(PLAN, flagged(all_done(), "optuna", 1, "disturbed"), flagged=True)
    assert cells(PLAN, list(found)) == {("serial", 1), ("optuna", 1)}
    (repeat,) = {id(one): one for one in found.values()}.values()
    assert (repeat.number, repeat.seed, repeat.because) == (1, 1, {"disturbed": 1})


def test_the_decision_sees_names_of_flags_and_no_result() -> None:
    assert list(inspect.signature(flagged_blocks).parameters) == ["plan", "flags", "numbers"]
    good = flagged(all_done(), "serial", 0, "machine_drift")
    bad = [replace(record, status="failed", reason="boom", charged="framework", metrics={}, trials=()) for record in good]
    assert set(to_repeat(PLAN, good, flagged=True)) == set(to_repeat(PLAN, bad, flagged=True))


def test_skipped_runs_are_not_repeated() -> None:
    plan = made_plan(skipped=[("optuna", 1)])
    found = to_repeat(plan, flagged(all_done(), "serial", 1, "low_memory"), flagged=True)
    assert cells(PLAN, list(found)) == {("serial", 1)}


def test_a_repetition_that_is_flagged_again_is_repeated_again() -> None:
    records = [*all_done(), execution("serial", 1, 1, flags=["disturbed"]), execution("optuna", 1, 1)]
    assert {repeat.number for repeat in to_repeat(PLAN, records, flagged=True).values()} == {2}
    records += [execution("serial", 1, 2), execution("optuna", 1, 2)]
    assert to_repeat(PLAN, records, flagged=True) == {}


def test_a_plain_resume_completes_a_repetition_that_was_cut() -> None:
    first = flagged(all_done(), "optuna", 1, "disturbed")
    cut = execution("optuna", 1, 1, status="interrupted", reason="interrupted by the user", charged="user")
    for records in ([*first, execution("serial", 1, 1)], [*first, execution("serial", 1, 1), cut]):
        found = to_repeat(PLAN, records, flagged=False)
        assert cells(PLAN, list(found)) == {("optuna", 1)}
        assert {repeat.number for repeat in found.values()} == {1}
        assert "not complete" in "\n".join(repeat_lines(PLAN, records))


def test_a_repetition_stands_whatever_it_came_to() -> None:
    first = execution("serial", 1)
    failed = execution("serial", 1, 1, status="failed", reason="boom", charged="framework")
    cut = execution("serial", 1, 1, status="interrupted", reason="cut", charged="user")
    for order in ([first, failed], [failed, first]):
        assert [record.status for record in selected_executions(order).values()] == ["failed"]
    assert [record.status for record in selected_executions([first, cut]).values()] == ["done"]
    assert [
        record.execution_id
        for record in selected_executions([execution("serial", 1, 2), execution("serial", 1, 1), first]).values()
    ] == [execution("serial", 1, 2).execution_id]


def test_what_was_repeated_is_counted_below_the_table() -> None:
    assert repeat_lines(PLAN, all_done()) == []
    records = flagged(all_done(), "serial", 2, "low_disk")
    records += [execution("serial", 2, 1), execution("optuna", 2, 1)]
    assert repeat_lines(PLAN, records) == [
        "Repeated whole for reasons of the machine, decided blind to results: 1 of 3 blocks.",
        "  repetition 1 of seed 2: disturbed in 1 run",
    ]


@pytest.mark.slow
def test_the_command_repeats_whole_blocks_and_keeps_the_old_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    quiet = machine.MachineState(load_1min=0.0, sentinel_ns=20_000_000)
    states = [quiet, quiet, quiet, replace(quiet, sentinel_ns=30_000_000), quiet]  # a warm-up, then two blocks of two
    monkeypatch.setattr(machine, "look", lambda results, **_: states.pop(0))
    monkeypatch.setattr("tuneoff.measure.use.LARGEST_SHARE", math.inf)  # whatever else runs while this is tested
    file = tmp_path / "x.yaml"
    keys = {"workload": "null", "adapters": ["serial", "serial"], "budget": {"trials": 2}, "seeds": [0, 1], "power": "none"}
    file.write_text(json.dumps(keys))
    results = tmp_path / "results"
    assert main(["compare", "--no-report", str(file), "--output", str(results), "--verbose"]) == 0
    before = {record.execution_id for record in read_runs(results)}
    assert "machine_drift: 1 of " in capsys.readouterr().out
    again_command = ["compare", "--no-report", str(file), "--output", str(results), "--retry", "flagged", "--json"]

    def interrupted(results: Path, **_: object) -> machine.MachineState:
        signal.raise_signal(signal.SIGINT)
        return quiet

    with monkeypatch.context() as patched:
        patched.setattr(machine, "look", interrupted)
        assert main(again_command) == 130
    ended = [run["status"] for run in json.loads(capsys.readouterr().out)["runs"]]
    assert ended == ["done", "done", "interrupted", "interrupted"]
    states += [quiet] * 3
    assert main(again_command) == 0
    assert main(["report", str(results), "--text"]) == 0
    assert "2 further executions of repeated runs (2 done): kept, not counted." in " ".join(capsys.readouterr().out.split())
    records = [record for record in read_runs(results) if not record.run_spec().warm_up]
    assert before <= {record.execution_id for record in read_runs(results)}
    again = [record for record in records if record.environment.get("repeat")]
    assert sorted((record.run_spec().seed, record.run_spec().replicate) for record in again) == [(1, 0), (1, 1)]
    assert {record.execution_id for record in again} <= {record.execution_id for record in selected_executions(records).values()}
    assert len(records) == 6
    assert states == []
    assert main(["verify", str(results)]) == 0


@pytest.mark.slow
def test_failed_runs_are_repeated_and_seeds_are_added_without_training_the_others_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("own.py").write_text(
        "import os\n"
        "def train(configuration, seed):\n"
        "    if os.path.exists('broken'):\n"
        "        raise ValueError('planted')\n"
        "    yield {'loss': 1.0}\n"
    )
    keys = {"workload": "own:train", "objective": {"metric": "loss", "mode": "min"}, "adapters": ["serial"], "power": "none"}
    more = {"search_space": {"x": {"type": "float", "low": 0, "high": 1}}, "budget": {"trials": 1, "epochs_per_trial": 1}}
    Path("x.yaml").write_text(json.dumps({**keys, **more, "seeds": "0-2"}))

    def compare(*options: str) -> tuple[int, dict[int, str]]:
        command = ["compare", "x.yaml", "--output", "results", "--no-report", "--quiet", "--json", *options]
        code = main(command)
        return code, {run["seed"]: run["status"] for run in json.loads(capsys.readouterr().out)["runs"]}

    def executions() -> dict[int, list[str]]:
        found: dict[int, list[str]] = {}
        counted = [record for record in read_runs(Path("results")) if not record.run_spec().warm_up]
        for record in sorted(counted, key=lambda record: str(record.started_at)):
            found.setdefault(record.run_spec().seed, []).append(record.status)
        return found

    Path("broken").touch()
    assert compare("--maxfail", "1") == (1, {0: "failed", 1: "planned", 2: "planned"})
    Path("broken").unlink()
    assert compare("--resume") == (1, {0: "failed", 1: "done", 2: "done"})
    assert compare("--retry", "failed") == (0, {0: "done", 1: "done", 2: "done"})
    assert compare("--seeds", "0-3", "--resume") == (0, dict.fromkeys(range(4), "done"))
    assert executions() == {0: ["failed", "done"], 1: ["done"], 2: ["done"], 3: ["done"]}
    assert main(["report", "results", "--text"]) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert "Failed runs were repeated until they were done (baseline: 1)" in told
    assert "Seeds added after the first run (3)" in told
    assert main(["verify", "results"]) == 0


def test_nothing_else_is_repeated() -> None:
    for name in ("best_differs", "steal", "slow_clock_source", "frequency_limited", "left_behind"):  # of results, of the machine
        assert to_repeat(PLAN, flagged(all_done(), "optuna", 1, name), flagged=True) == {}
    assert to_repeat(PLAN, flagged(all_done(), "optuna", 1, "disturbed"), flagged=False) == {}  # it is not asked for
