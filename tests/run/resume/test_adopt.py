"""A new execution takes over what an interrupted one left, and `tuneoff verify` holds it to that."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from builders.event_logs import Log
from builders.results_folders import Results
from builders.resume_logs import SPEC, continuing_log, killed_log
from tuneoff.errors import ResultsError, UnsupportedError
from tuneoff.experiment.spec import run_spec_to_json
from tuneoff.record.endings import KILLED, Ruling
from tuneoff.record.history import FILE_NAME, read_history
from tuneoff.record.store import read_run, write_run
from tuneoff.run.resume import adopt, to_continue
from tuneoff.run.trial.checkpoint import checkpoint_path
from tuneoff.trust.verify.results import verify


@pytest.fixture
def interrupted(tmp_path: Path) -> Results:
    results = Results(tmp_path / "results", [SPEC])
    results.add_log(SPEC, killed_log(), KILLED)
    return results


@pytest.fixture
def continued(interrupted: Results) -> Results:
    adopt(interrupted.folder(SPEC, "run1-one"), interrupted.folder(SPEC, "run1-two"), SPEC)
    interrupted.add_log(SPEC, continuing_log())
    return interrupted


def test_an_interrupted_run_with_a_finished_trial_can_be_continued(interrupted: Results) -> None:
    assert to_continue(interrupted.plan, interrupted.path) == {SPEC.run_id: interrupted.folder(SPEC, "run1-one")}


def test_a_run_without_a_finished_trial_begins_anew(tmp_path: Path) -> None:
    results, log = Results(tmp_path / "results", [SPEC]), Log("run1-one")
    log.step("deploy", 0, 1)
    log.submit("t00000", 2)
    log.process("worker", 1).start("t00000", 2, slot=0)
    results.add_log(SPEC, log, KILLED)
    assert to_continue(results.plan, results.path) == {}


@pytest.mark.parametrize(
    "ruling", [Ruling(status="done"), Ruling(status="timeout", reason="step trial took longer", charged="workload")]
)
def test_what_resume_leaves_alone_is_not_continued(tmp_path: Path, ruling: Ruling) -> None:
    results = Results(tmp_path / "results", [SPEC])
    results.add_log(SPEC, killed_log(), ruling)
    assert to_continue(results.plan, results.path) == {}


@pytest.mark.parametrize(
    ("adapter", "sampler", "reason"),
    [
        ("katib", "random", "continuing inside a run: not by tuneoff yet"),
        ("optuna", "cmaes", "keeps its state in the study that was interrupted"),
        ("ray-tune", "sobol", "cannot be told how many points of the sequence are used up"),
    ],
)
def test_what_cannot_be_continued_is_refused_with_the_reason_and_the_way_out(
    tmp_path: Path, adapter: str, sampler: str, reason: str
) -> None:
    experiment = replace(SPEC.experiment, sampler=replace(SPEC.experiment.sampler, name=sampler))
    spec = replace(SPEC, adapter=adapter, experiment=experiment)
    results = Results(tmp_path / "results", [spec])
    results.add_log(spec, killed_log(), KILLED)
    with pytest.raises(UnsupportedError, match=f"cannot be continued: .*{reason}.*; leave out --continue"):
        to_continue(results.plan, results.path)


def test_the_new_execution_has_the_files_and_the_best_checkpoint_and_the_old_one_stays(interrupted: Results) -> None:
    earlier, folder = interrupted.folder(SPEC, "run1-one"), interrupted.folder(SPEC, "run1-two")
    for trial in ("t00000", "t00002"):
        checkpoint_path(earlier, trial).parent.mkdir(exist_ok=True)
        checkpoint_path(earlier, trial).write_bytes(trial.encode())
    before = {path: path.read_bytes() for path in earlier.rglob("*") if path.is_file()}
    history = adopt(earlier, folder, SPEC)
    assert history == read_history(folder)
    assert [trial.trial_id for trial in history.finished] == ["t00000", "t00001"]
    assert checkpoint_path(folder, "t00000").read_bytes() == b"t00000"
    assert not checkpoint_path(folder, "t00002").exists(), "it did not end, so it cannot be the best"
    taken = folder / "earlier" / "run1-one" / "events"
    assert {path.name: path.read_bytes() for path in taken.iterdir()} == {
        path.name: content for path, content in before.items() if path.parent.name == "events"
    }
    assert {path: path.read_bytes() for path in earlier.rglob("*") if path.is_file()} == before


def test_what_the_earlier_record_says_of_its_run_is_not_believed(interrupted: Results) -> None:
    """Else a budget of one epoch makes a trial complete that was cut in its second one, and it is never trained again."""
    earlier = interrupted.folder(SPEC, "run1-one")
    short = replace(SPEC, experiment=replace(SPEC.experiment, budget=replace(SPEC.experiment.budget, epochs_per_trial=1)))
    write_run(earlier, replace(read_run(earlier), specification=run_spec_to_json(short)))
    history = adopt(earlier, interrupted.folder(SPEC, "run1-two"), SPEC)
    assert [trial.trial_id for trial in history.finished] == ["t00000", "t00001"]


def test_a_changed_execution_is_not_continued(interrupted: Results) -> None:
    earlier = interrupted.folder(SPEC, "run1-one")
    (path, *_) = (earlier / "events").iterdir()
    path.write_bytes(path.read_bytes() + b"\n")
    with pytest.raises(ResultsError, match=r"cannot be continued: events/.* changed: .*; restore it, or leave out --continue"):
        adopt(earlier, interrupted.folder(SPEC, "run1-two"), SPEC)


def test_nothing_is_copied_over_or_through_what_is_in_the_way(interrupted: Results, tmp_path: Path) -> None:
    mine, folder = tmp_path / "mine", interrupted.folder(SPEC, "run1-two")
    mine.write_text("precious")
    events = folder / "earlier" / "run1-one" / "events"
    events.mkdir(parents=True)
    for path in (interrupted.folder(SPEC, "run1-one") / "events").iterdir():
        (events / path.name).symlink_to(mine)
    with pytest.raises(ResultsError, match="File exists"):
        adopt(interrupted.folder(SPEC, "run1-one"), folder, SPEC)
    assert mine.read_text() == "precious"


def test_a_continued_run_is_verified(continued: Results) -> None:
    assert [problem.line for problem in verify(continued.path, processes=1).problems] == []
    record = read_run(continued.folder(SPEC, "run1-two"))
    assert record.continues is not None
    assert len(record.trials) == 4


def test_a_continued_run_that_is_continued_has_both_executions(continued: Results) -> None:
    history = adopt(continued.folder(SPEC, "run1-two"), continued.folder(SPEC, "run1-three"), SPEC)
    assert [one.execution_id for one in history.executions] == ["run1-one", "run1-two"]
    assert [trial.trial_id for trial in history.finished] == ["t00000", "t00001", "t00002", "t00003"]
    assert history.epochs == 7


def _tell_another_value(folder: Path) -> None:
    data = json.loads((folder / FILE_NAME).read_text())
    data["finished"][0]["value"] = 0.99
    (folder / FILE_NAME).write_text(json.dumps(data))


def _change_an_earlier_event(folder: Path) -> None:
    for path in (folder / "earlier/run1-one/events").iterdir():
        text = path.read_text().replace("0.8", "0.9")
        path.unlink()  # else the link changes the other one too
        path.write_text(text)


@pytest.mark.parametrize(
    ("change", "found"),
    [
        (_tell_another_value, "continues.json: finished[#1].value: stored 0.99, recomputed 0.8"),
        (_change_an_earlier_event, "is not what execution run1-one has in its own folder"),
    ],
)
def test_what_was_changed_and_sealed_anew_is_found(continued: Results, change: Callable[[Path], None], found: str) -> None:
    change(continued.folder(SPEC, "run1-two"))
    continued.finish(SPEC, "run1-two")
    assert any(found in problem.line for problem in verify(continued.path, processes=1).problems)


def test_a_continued_run_whose_earlier_folder_is_gone_says_so(continued: Results) -> None:
    for path in sorted(continued.folder(SPEC, "run1-one").rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    continued.folder(SPEC, "run1-one").rmdir()
    found = verify(continued.path, processes=1)
    assert [problem.line for problem in found.problems] == []
    assert any("run1-one" in note for outcome in found.outcomes for note in outcome.notes)
