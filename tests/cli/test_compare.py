"""`compare` and `run`: exit codes, the table, the path, the way to go on. The runs themselves are faked."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from builders.made_choices import made_results, runs_of
from builders.made_results import Entry, results, steady
from builders.made_runs import write_results
from command_line import Call, File
from tuneoff.base.layout import PLAN
from tuneoff.cli import matrix
from tuneoff.cli.folders import new_folder, newest_folder, resumed
from tuneoff.cli.matrix import resume_command
from tuneoff.cli.plan import expected_duration
from tuneoff.cli.run import first_run
from tuneoff.cli.selection import overridden_plan
from tuneoff.errors import ExperimentError
from tuneoff.record.results_folder import read_plan
from tuneoff.record.run_record import StepRecord
from tuneoff.run import execute as execution
from tuneoff.run.run_ends import RunEnd

Outcome = Callable[..., None]


@pytest.fixture
def outcome(monkeypatch: pytest.MonkeyPatch, fakes: None) -> Outcome:
    """Return a function that says what the runs of the next matrix come to."""

    def say(*statuses: str) -> None:
        def execute(request: execution.PlanRequest) -> list[RunEnd]:
            plan, results, listener = request.plan, request.results, request.listener
            (results / "runs").mkdir(parents=True, exist_ok=True)
            (results / PLAN).write_text(json.dumps(plan.to_json()))
            ends = []
            for position, (run, status) in enumerate(zip(plan.counted, statuses, strict=True), 1):
                reason = None if status == "done" else "planted"
                listener.run_started(position, len(statuses), run.label, run.run_id)
                listener.run_ended(position, len(statuses), run.label, status, reason, 1.0)
                ends.append(RunEnd(run_id=run.run_id, label=run.label, status=status, reason=reason, folder=results / "x"))
            return ends

        monkeypatch.setattr(execution, "execute", execute)
        monkeypatch.setattr(matrix, "written_report", lambda *_: None)  # it has tests of its own, in tests/tell/page

    return say


@pytest.mark.parametrize(
    ("statuses", "code"),
    [
        (["done", "done"], 0),
        (["done", "skipped"], 0),
        (["done", "failed"], 1),
        (["skipped", "failed"], 1),
        (["timeout", "done"], 1),
        (["interrupted", "planned"], 130),
        (["done", "planned"], 130),
        (["failed", "interrupted"], 130),
    ],
)
def test_the_exit_code_tells_whether_every_run_is_done(
    call: Call, file: File, outcome: Outcome, statuses: Sequence[str], code: int
) -> None:
    outcome(*statuses)
    answer = call("compare", file(seeds=[0, 1]), "--output", "results/../results/x", "--verbose")
    assert answer.code == code
    assert answer.out.rstrip().endswith(str(Path.cwd() / "results" / "x"))
    assert "plain" in answer.out


def test_a_failed_run_is_named_with_its_reason_and_its_log(call: Call, file: File, outcome: Outcome) -> None:
    outcome("failed")
    answer = call("compare", file(), "--output", "x")
    last = answer.err.splitlines()[-1]
    assert last.startswith("tuneoff: run ")
    assert last.endswith("(plain random seed 0) failed: planted; see x/x/log.txt")


def test_an_interrupted_matrix_says_how_to_go_on(call: Call, file: File, outcome: Outcome) -> None:
    outcome("interrupted")
    answer = call("compare", file(), "--trials", "3")
    folder = next(Path("results").iterdir())
    path = Path.cwd() / "experiment.yaml"
    assert answer.err.splitlines()[-1].endswith(f"tuneoff compare {path} --trials 3 --resume --output {folder}")
    outcome("done")
    assert call("compare", file(), "--trials", "3", "--resume").code == 0
    assert list(Path("results").iterdir()) == [folder]


def test_seeds_are_added_to_a_folder_only_where_they_are_named(call: Call, file: File, outcome: Outcome) -> None:
    outcome("done", "done")
    path = file(seeds="0-1")
    call("compare", path)
    (folder,) = Path("results").iterdir()
    before = read_plan(folder)
    outcome("done", "done", "done")
    answer = call("compare", file(seeds="0-2"), "--resume", "--output", folder)
    assert (answer.code, read_plan(folder)) == (5, before)
    assert answer.line.endswith(
        "has seeds 0,1, but asked for are 0-2; to go on: --seeds 0,1; to add the others, which then only describe: --seeds 0-2"
    )
    assert call("compare", path, "--resume", "--seeds", "count:3", "--json").code == 0  # the newest folder with the first seeds
    assert [run["seed"] for run in json.loads(call("watch", "--runs", "--json").out)["runs"]] == [0, 1, 2]
    after = read_plan(folder)
    assert (after.added_seeds, after.analysis) == ((2,), before.analysis)
    assert list(Path("results").iterdir()) == [folder]
    assert call("compare", file(seeds="0-1"), "--resume", "--output", folder).line.endswith("to go on: --seeds 0-2")


def test_maxfail_ends_a_matrix_as_failed_and_says_how_to_go_on(call: Call, file: File, outcome: Outcome) -> None:
    outcome("done", "failed", "planned")
    answer = call("compare", file(seeds="0-2"), "--maxfail", "1", "--output", "x")
    assert answer.code == 1
    why, command = answer.err.splitlines()[-2:]
    assert why == "tuneoff: stopped after 1 failed run (--maxfail); to go on:"
    assert command.endswith(f"tuneoff compare {Path.cwd() / 'experiment.yaml'} --maxfail 1 --output x --resume")
    outcome("failed", "interrupted", "planned")
    assert call("compare", file(seeds="0-2"), "--maxfail", "2", "--output", "y").code == 130
    assert "must be a whole number from 1, but got '0'" in call("compare", file(), "--maxfail", "0").line


def test_a_run_of_a_sampler_that_is_another_one_is_the_run_of_that_one() -> None:
    entries = [Entry("a", steady(), sampler="default", same_as="random"), Entry("a", steady())]
    assert [run.spec.experiment.sampler.name for run in first_run(results(entries).plan).runs] == ["random"]


def test_quiet_shows_the_answer_and_problems_alone(call: Call, file: File, outcome: Outcome) -> None:
    outcome("done", "failed")
    path = file(seeds="0-1")
    loud, quiet = (call("compare", path, "--output", name, *more) for name, more in (("x", ()), ("y", ("--quiet",))))
    assert "[1/2]" in loud.err
    assert quiet.out.replace("/y", "/x") == loud.out
    assert re.fullmatch(r"tuneoff: run \w+ \(plain random seed 1\) failed: planted; see y/x/log.txt\n", quiet.err)


@pytest.mark.parametrize(
    ("words", "command"),
    [
        (["a b.yaml", "--output=x", "--resume"], "compare 'a b.yaml' --output=x --resume"),  # no option twice
        (["--trials", "2", "--", "-a.yaml"], "compare --trials 2 --resume --output y -- -a.yaml"),
    ],
)
def test_the_command_that_goes_on_is_one_that_runs(words: list[str], command: str) -> None:
    assert resume_command(["compare", *words], Path("y")).endswith(command)


def test_json_replaces_the_table(call: Call, file: File, outcome: Outcome) -> None:
    outcome("done", "failed")
    answer = call("compare", file(seeds=[0, 1]), "--json")
    data = json.loads(answer.out)
    assert (answer.code, data["exit_code"]) == (1, 1)
    assert [run["status"] for run in data["runs"]] == ["done", "failed"]
    assert Path(data["results"]).parent == Path.cwd() / "results"


def test_run_takes_the_only_adapter_of_the_file(call: Call, file: File, outcome: Outcome) -> None:
    outcome("done")
    answer = call("run", file(adapters=["rich"]), "--json")
    assert [run["label"] for run in json.loads(answer.out)["runs"]] == ["rich"]
    answer = call("run", file(adapters=["plain", "rich"]))
    assert answer.code == 2
    assert "--adapter must name the framework, as the file has several: plain, rich" in answer.line


def test_status_shows_the_tables_of_a_folder_again(call: Call, file: File, outcome: Outcome) -> None:
    outcome("done")
    ended = call("compare", file(), "--output", "results/x", "--verbose")
    again = call("watch", "results/x", "--tables")
    assert (again.code, again.out) == (0, ended.out.lstrip("\n"))
    assert "trials" in again.out


def test_a_new_folder_is_new(file: File, fakes: None, tmp_path: Path) -> None:
    plan, now = overridden_plan(file(name="mine")), datetime(2030, 1, 2, 3, 4, 5, tzinfo=UTC)
    first = new_folder(plan, tmp_path, now)
    assert first == tmp_path / "mine-20300102T030405Z"
    first.mkdir()
    assert new_folder(plan, tmp_path, now) == tmp_path / "mine-20300102T030405Z-2"


def test_the_newest_folder_is_taken_and_only_the_same_plan_is_resumed(file: File, fakes: None, tmp_path: Path) -> None:
    plan, other = overridden_plan(file()), overridden_plan(file(), trials=2)
    for age, (name, content) in enumerate({"a": plan, "b": other}.items()):
        (tmp_path / name).mkdir()
        (tmp_path / name / PLAN).write_text(json.dumps(content.to_json()))
        os.utime(tmp_path / name / PLAN, ns=(age, age))
    assert newest_folder(tmp_path) == tmp_path / "b"
    assert resumed(plan, None, adds_seeds=False, root=tmp_path) == (tmp_path / "a", plan)
    with pytest.raises(ExperimentError):
        resumed(overridden_plan(file(), trials=3), None, adds_seeds=False, root=tmp_path)


def test_how_long_it_takes_is_said_only_where_an_earlier_folder_has_every_framework(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    steps = (StepRecord(step="deploy", started_ns=0, ended_ns=2_000_000_000),)
    ran = {
        name: [(spec, record and replace(record, steps=steps)) for spec, record in runs_of(name)] for name in ("serial", "optuna")
    }
    both = made_results(*ran.values(), folder=Path("results/old"))
    assert "known after" in expected_duration(both.plan)
    write_results(made_results(ran["serial"], folder=Path("results/one")))
    assert "known after" in expected_duration(both.plan)
    write_results(both)
    assert expected_duration(both.plan) == f"about 40 s, by {Path('results/old')}"
    assert expected_duration(both.plan, both.plan.runs[-2:], Path("results/old")) == "about 4 s left"  # of a resumed matrix
    Path("results/new").mkdir()  # as it is before the first run
    assert expected_duration(both.plan, both.plan.runs, Path("results/new")) == f"about 40 s, by {Path('results/old')}"
