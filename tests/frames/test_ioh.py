from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from event_logs import make_spec
from frames.ioh_reader import Block, read
from made_runs import METRIC, made_run
from results_folders import Results, write_examples
from tuneoff.cli.main import main
from tuneoff.errors import ResultsError
from tuneoff.experiment.spec import Objective, RunSpec
from tuneoff.frames.ioh import NO_VALUE, points, write_ioh
from tuneoff.matrix.folder import read_plan
from tuneoff.metrics.incumbent import incumbents
from tuneoff.records.model import RunRecord
from tuneoff.records.store import read_run, write_run


def blocks(results: Path) -> list[Block]:
    write_ioh(results, results / "export", read_plan(results))
    return read(results / "export" / "ioh")


def add(results: Results, spec: RunSpec, record: RunRecord) -> None:
    folder = results.folder(spec, record.execution_id)
    folder.mkdir(parents=True)
    write_run(folder, record)


def accuracies(*values: float) -> list[list[dict[str, float | None]]]:
    """Return the curves of trials with one epoch each."""
    return [[{METRIC: value}] for value in values]


def test_the_worked_examples_are_their_incumbents(tmp_path: Path) -> None:
    found = blocks(write_examples(tmp_path / "results", seeds=(0, 7)).path)
    assert [(one.algorithm, one.run["seed"], one.run["instance"], one.points) for one in found] == [
        ("optuna random", 0, 1, [(1, NO_VALUE), (2, pytest.approx(0.26)), (3, pytest.approx(0.26))]),
        ("serial random", 0, 1, [(1, NO_VALUE), (2, pytest.approx(0.1)), (3, pytest.approx(0.05))]),
        ("serial random", 7, 2, [(1, NO_VALUE), (2, pytest.approx(0.1)), (3, pytest.approx(0.05))]),
    ]
    assert {(one.function, one.dimension) for one in found} == {("null_validation_accuracy", 1)}


def test_blocks_are_the_right_continuous_incumbents_over_begun_trials(tmp_path: Path) -> None:
    results = write_examples(tmp_path / "results").path
    for block in blocks(results):
        (path,) = [path for path in results.glob("runs/*/*/run.json") if read_run(path).run_spec().adapter in block.algorithm]
        steps = incumbents(read_run(path))
        for step in steps:
            assert block.target_at(1.0 - step.value) == step.trials
        assert block.points[-1][1] == 1.0 - steps[-1].value


def test_a_loss_is_not_turned_around(tmp_path: Path) -> None:
    spec = make_spec(objective=Objective(metric="validation_loss", mode="min"))
    curves: list[Any] = [[{"validation_loss": value}] for value in (3.0, 2.5, 2.75)]
    assert points(made_run(spec, curves))[-1][1] == 2.5


def test_failed_runs_count_and_reach_nothing_and_missing_ones_are_missing(odd: Path) -> None:
    found = {one.run["seed"]: one for one in blocks(odd)}
    assert sorted(found) == [0, 1, 2, 3, 4, 8]  # 5 unfinished, 6 planned, 7 a warm-up
    assert {seed for seed, one in found.items() if not one.run["done"]} == {1, 2, 8}
    for seed in (1, 2, 8):
        assert found[seed].target_at(1.0) is None
        assert {value for _, value in found[seed].points} == {NO_VALUE}
    assert (found[1].run["evals"], found[2].run["evals"]) == (3, 1)
    assert found[4].points == found[0].points  # the execution that stands, not the one that was interrupted


def test_what_differs_is_in_other_files(tmp_path: Path) -> None:
    def of(variant: dict[str, Any], **more: Any) -> RunSpec:
        return make_spec(variant=variant, **more)

    specs = [
        of({"budget.trials": 3}, trials=3),
        of({"budget.trials": 5}, trials=5),
        of({"budget.trials": 3, "sampler": "tpe"}, trials=3, sampler="tpe"),
        of({"budget.trials": 3}, trials=3, adapter="a/../../b"),
        of({"budget.trials": 3}, trials=3, adapter="a_..__.._b"),
        of({"budget.trials": 3}, trials=3, pruner="asha"),
    ]
    results = Results(tmp_path / "results", specs)
    for place, spec in enumerate(specs):
        add(results, spec, made_run(spec, accuracies(place / 10)))
    found = blocks(results.path)
    assert len({(one.algorithm, one.function) for one in found}) == len(found) == 6
    assert {one.run["best"]["y"] for one in found} == {1.0 - place / 10 for place in range(6)}
    assert {one.function for one in found} == {"null_validation_accuracy_trials=3", "null_validation_accuracy_trials=5"}
    assert len(list((results.path / "export" / "ioh").iterdir())) == 5
    assert sorted(path.name for path in (results.path / "export").iterdir()) == ["ioh"]


def test_an_emulated_platform_keeps_its_label(tmp_path: Path) -> None:
    spec = replace(make_spec(adapter="katib"), platform="emulated")
    results = Results(tmp_path / "results", [spec])
    add(results, spec, made_run(spec, accuracies(0.5), emulated=True))
    assert [one.algorithm for one in blocks(results.path)] == ["katib@emulated random"]


def test_hostile_names_stay_texts(tmp_path: Path) -> None:
    """A reader may evaluate an attribute of the experiment: nothing from outside stands there."""
    name = "__import__('os').system('x')\x1b\n\"</script>"
    specs = [make_spec(adapter=name, variant={"workload.options": name}, objective=Objective(metric=name, mode="max"))]
    results = Results(tmp_path / "results", specs)
    add(results, specs[0], made_run(specs[0], accuracies(0.5), status="failed", reason=name))
    (path,) = write_ioh(results.path, tmp_path / "out", read_plan(results.path))
    metadata = json.loads(path.read_text())
    assert metadata["algorithm"]["name"] == f"{name} random"
    assert "import" not in json.dumps(metadata["experiment_attributes"])
    for attribute in metadata["experiment_attributes"]:
        for text in attribute.values():
            with pytest.raises(SyntaxError):
                compile(text, "", "eval")
    for found in (tmp_path / "out").rglob("*"):
        assert re.fullmatch(r"[A-Za-z0-9_.+=@-]+", found.name)
    assert len(read(tmp_path / "out" / "ioh")) == 1


def test_a_new_export_replaces_the_old_one_and_nothing_else(tmp_path: Path) -> None:
    results = write_examples(tmp_path / "results")
    blocks(results.path)
    old = results.path / "export" / "ioh" / "gone"
    (old / "data_f1_x").mkdir(parents=True)
    (old / "IOHprofiler_f1_x.json").write_text("{}")
    assert len(blocks(results.path)) == 2
    assert not old.exists()
    (results.path / "export" / "ioh" / "thesis.tex").write_text("mine")
    with pytest.raises(ResultsError, match=r"holds thesis\.tex, which no export wrote; move it, or choose another --output"):
        blocks(results.path)
    assert (results.path / "export" / "ioh" / "thesis.tex").read_text() == "mine"
    assert not (results.path / "export" / ".ioh.tmp").exists()


def test_a_destination_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    results = write_examples(tmp_path / "results").path
    (tmp_path / "file").write_text("")
    with pytest.raises(ResultsError, match="cannot be written") as caught:
        write_ioh(results, tmp_path / "file", read_plan(results))
    assert "\n" not in str(caught.value)


def test_the_command_writes_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    results = write_examples(tmp_path / "results").path
    assert main(["export", str(results), "--format", "ioh"]) == 0
    paths = [Path(line) for line in capsys.readouterr().out.splitlines()]
    assert [path.name for path in paths] == ["IOHprofiler_f1_null_validation_accuracy.json"] * 2
    assert all(path.is_file() for path in paths)
    assert main(["export", str(results), "--format", "ioh", "--output", str(tmp_path / "other")]) == 0
    assert len(read(tmp_path / "other" / "ioh")) == 2


def _edit(pattern: str, text: str) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        (path,) = folder.glob(f"ioh/serial_random/{pattern}")
        before = path.read_text()
        old, new = text.split(" => ")
        path.write_text(re.sub(old, new, before, count=1))
        assert path.read_text() != before

    return change


DEFECTS: Sequence[tuple[str, Callable[[Path], None]]] = [
    ("evaluations must rise", _edit("*/*.dat", r"\n3 .* => \n2 0.05")),
    ("evaluations must rise", _edit("*/*.dat", r"\n1 .*\n => \n")),
    ("gets worse", _edit("*/*.dat", r"\n2 .* => \n2 0.01")),
    ("must be finite", _edit("*/*.dat", r"\n1 .* => \n1 inf")),
    ("runs, but", _edit("*/*.dat", r"evaluations raw_y\n1 => evaluations raw_y\n1 1.0\nevaluations raw_y\n1")),
    ("separation line", _edit("*/*.dat", r"raw_y => y")),
    ("is not that of the data", _edit("*.json", r'"y": 0\.05\d* => "y": 0.06')),
    ("must be minimized", _edit("*.json", r'"maximization": false => "maximization": true')),
]


@pytest.mark.parametrize(("text", "change"), DEFECTS)
def test_the_reader_finds_planted_defects(tmp_path: Path, text: str, change: Callable[[Path], None]) -> None:
    results = write_examples(tmp_path / "results").path
    write_ioh(results, tmp_path / "out", read_plan(results))
    change(tmp_path / "out")
    with pytest.raises(ValueError, match=text):
        read(tmp_path / "out" / "ioh")


def test_two_workers_begin_before_the_first_ends() -> None:
    """Four trials begin at once and end one after the other, better each time: one line says so, at evaluation 4."""
    spec = make_spec(trials=4)
    record = made_run(spec, [[{METRIC: 0.1 * (place + 1)}] for place in range(4)])
    assert [step.trials for step in incumbents(record)][-1] == 4
    assert [*points(record)[-1]] == pytest.approx([4, 0.6])
