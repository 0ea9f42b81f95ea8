"""A killed run that is continued equals one that was not, and the proof notices where it does not."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from e2e import random_resumes
from e2e.resume_checks import Outcome, outcome
from tuneoff.record.run_record import RunRecord

pytestmark = pytest.mark.slow
WORKLOAD = "e2e.resumable_workload:Resumable"
PLANTED: dict[str, Callable[[Outcome], bool]] = {
    "Forgetful": lambda found: bool(found.repeated),
    "Renaming": lambda found: bool(found.repeated),
    "Dropping": lambda found: bool(found.budget),
    "Overspending": lambda found: any(text.startswith("over_budget") for text in found.other),  # core refused the last ones
    "Shortsighted": lambda found: bool(found.incumbent),
}

BREAKS = {  # rules of a sound history; naming a wrong best trial breaks none
    "Forgetful": {"resurrected", "given-point-never"},
    "Renaming": {"given-point-twice"},
    "Dropping": {"no-end"},
    "Overspending": {"not-given"},
}


@pytest.fixture(scope="module", autouse=True)
def _shorter(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Let epochs be shorter than in the proof that docs/resume.md shows, and kills come as much sooner after them."""
    file = tmp_path_factory.mktemp("matrix") / "shorter.yaml"
    workload = f"{{name: '{WORKLOAD}', options: {{epoch_seconds: 0.08}}}}"
    file.write_text(f"include: {random_resumes.MATRIX}\nworkload: {workload}\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(random_resumes, "MATRIX", file)
        patch.setattr(random_resumes, "LATEST_SECONDS", 0.2)
        yield


@pytest.fixture(scope="module")
def uninterrupted(_shorter: None, tmp_path_factory: pytest.TempPathFactory) -> RunRecord:
    """A run by the honest adapter. It is the reference of all: configurations are given, planted ones differ after a kill."""
    return random_resumes.reference("serial", tmp_path_factory.mktemp("reference") / "fixed", "fixed")


@pytest.mark.parametrize("adapter", ["serial", "optuna"])
def test_killed_runs_that_are_continued_lose_and_repeat_nothing(adapter: str, tmp_path: Path, uninterrupted: RunRecord) -> None:
    tally = random_resumes.kill_many(adapter, tmp_path, 2, random.Random(5), ["fixed"], {"fixed": uninterrupted})
    assert [one.text() for one in tally.wrong] == []
    assert tally.kills == 2
    assert tally.kept > 0


@pytest.mark.parametrize("name", PLANTED)
def test_a_wrong_resume_is_caught(
    name: str, tmp_path: Path, uninterrupted: RunRecord, broken_rules: Callable[[Path], set[str]]
) -> None:
    adapter, results = f"e2e.planted_resumes:{name}", tmp_path / "results"
    assert random_resumes.kill_once(adapter, "fixed", results, "command", 13, 0.05)
    process = random_resumes.start(adapter, "fixed", results)
    process.communicate(timeout=random_resumes.LONGEST_SECONDS)
    found = outcome(results, uninterrupted)
    assert PLANTED[name](found), found
    assert BREAKS.get(name, set()) <= broken_rules(results)
    if name == "Shortsighted":
        _lose_a_trial(results)
        assert outcome(results, uninterrupted).lost == ("t00000",)


def _lose_a_trial(results: Path) -> None:
    """Change what the last record says of a trial that was finished before the kill."""
    (path,) = (path for path in results.glob("runs/*/*/run.json") if (path.parent / "continues.json").exists())
    record = json.loads(path.read_text())
    (trial,) = (trial for trial in record["trials"] if trial["trial"] == "t00000")
    trial["attempts"][-1]["epochs"][0]["metrics"]["validation_loss"] = 0.0
    path.write_text(json.dumps(record))
