"""What faults say against an adapter: by which settings, on which platform, and what nobody tried."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tuneoff.errors import ResultsError, UnknownNameError
from tuneoff.judge.fault_results import NO_SUCH_PART, FaultResult, read_faults
from tuneoff.judge.recommend.eligibility import No, fault_notes, fault_obstacles, of_adapter
from tuneoff.judge.recommend.request import Request

SIGKILL = Request(must_survive=("sigkill",))
NEVER_WRONG = Request(never_silently_wrong=True)


def result(adapter: str, outcome: str | None, fault: str = "sigkill", by: str = "adapter", reason: str = "why") -> dict[str, Any]:
    return {"adapter": adapter, "setting": by, "fault": fault, "outcome": outcome, "reason": reason, "seconds": 1.0}


def found(
    *results: dict[str, Any], adapter: str = "optuna", emulated: Sequence[str] = (), platform: str | None = None
) -> list[FaultResult]:
    made = [FaultResult(**one, file="faults.json") for one in results]
    return of_adapter(made, adapter, emulated, platform)


def against(
    *results: dict[str, Any], request: Request = SIGKILL, adapter: str = "optuna", emulated: Sequence[str] = ()
) -> list[No]:
    return [
        one.kind
        for one in fault_obstacles(found(*results, adapter=adapter, emulated=emulated, platform=request.platform), request)
    ]


@pytest.mark.parametrize("outcome", ["recovered", "trial lost"])
def test_an_answer_that_holds_is_survival(outcome: str) -> None:
    assert against(result("optuna", outcome)) == []


@pytest.mark.parametrize("outcome", ["run aborted", "hung until the limit", "silently wrong"])
def test_no_answer_that_holds_is_none_and_is_cited(outcome: str) -> None:
    (obstacle,) = fault_obstacles(found(result("optuna", outcome)), SIGKILL)
    assert obstacle.kind is No.FAULTS
    assert obstacle.text == f"sigkill through its adapter: {outcome}, why (faults.json)"


def test_only_the_settings_that_were_asked_for_decide() -> None:
    both = (result("optuna", "recovered"), result("optuna", "run aborted", by="defaults"))
    assert against(*both) == []
    assert against(*both, request=Request(must_survive=("sigkill",), faults_by="defaults")) == [No.FAULTS]
    assert fault_notes(found(*both), SIGKILL) == ["by its own defaults, sigkill: run aborted (faults.json)"]


def test_what_nobody_tried_is_not_known_and_a_part_that_is_not_there_cannot_fail() -> None:
    assert against() == [No.UNKNOWN]
    assert against(result("serial", "recovered")) == [No.UNKNOWN]
    assert against(result("optuna", None, reason="not struck")) == [No.UNKNOWN]
    assert against(result("optuna", None, reason=NO_SUCH_PART)) == []


def test_what_a_stand_in_survived_is_not_known_of_the_platform() -> None:
    emulated = result("katib@emulated", "recovered")
    assert against(emulated, adapter="katib", emulated=("emulated",)) == [No.UNKNOWN]
    assert against(result("katib@kubernetes", "recovered"), adapter="katib", emulated=("emulated",)) == []
    other = Request(must_survive=("sigkill",), platform="kubernetes")
    assert against(result("katib@here (emulated)", "recovered"), adapter="katib", request=other) == [No.UNKNOWN]
    assert against(result("katib@there", "recovered"), adapter="katib", request=other) == [No.UNKNOWN]


def test_labels_with_options_and_modules_belong_to_their_adapter() -> None:
    assert against(result('optuna{"storage":"redis"}', "recovered")) == []
    assert against(result("optuna-fork", "recovered")) == [No.UNKNOWN]
    assert against(result("my.module:Class", "recovered"), adapter="my.module:Class") == []


def test_never_silently_wrong_is_of_every_fault_that_was_tried() -> None:
    fine = [result("optuna", "run aborted", fault) for fault in ("nan", "inf")]
    assert against(*fine, request=NEVER_WRONG) == []
    assert against(*fine, result("optuna", "silently wrong", "late_report"), request=NEVER_WRONG) == [No.FAULTS]
    assert against(result("optuna", "recovered", "none"), request=NEVER_WRONG) == [No.UNKNOWN]


def test_how_many_faults_were_tried_is_told() -> None:
    tried = found(*(result("optuna", "recovered", fault) for fault in ("none", "nan", "inf")), result("optuna", None, "hang"))
    assert fault_notes(tried, NEVER_WRONG) == ["2 faults through its adapter were tried: silently wrong in none"]


def test_files_and_folders_of_the_command_are_read_back(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / f"{name}.json").write_text(json.dumps({"about": {}, "runs": [result(name, "recovered")], "exit_code": 0}))
    assert [one.adapter for one in read_faults([tmp_path])] == ["one", "two"]
    assert [one.file for one in read_faults([tmp_path / "two.json"])] == [str(tmp_path / "two.json")]


@pytest.mark.parametrize("text", ["", "[]", '{"runs": [{}]}', '{"runs": 3}', "\xff", '{"a": 1}'])
def test_another_file_is_refused_in_one_line(tmp_path: Path, text: str) -> None:
    path = tmp_path / "x.json"
    path.write_text(text, encoding="latin-1")
    with pytest.raises(ResultsError, match="is not what `tuneoff faults --json` writes"):
        read_faults([path])


def test_a_folder_without_results_and_a_missing_file_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ResultsError, match=r"holds no \*\.json"):
        read_faults([tmp_path])
    with pytest.raises(ResultsError, match="cannot be read"):
        read_faults([tmp_path / "missing.json"])


def test_faults_go_by_the_names_that_the_files_know(tmp_path: Path) -> None:
    content = {
        "runs": [result("serial", "recovered", fault) for fault in ("none", "sigkill")],
        "faults": ["none", "raise", "nan"],
    }
    (tmp_path / "faults.json").write_text(json.dumps(content))
    assert len(read_faults([tmp_path], ["raise", "nan", "sigkill"])) == 2
    for name in ("worker_killed", "none"):
        with pytest.raises(UnknownNameError, match=f"no fault named '{name}'.*; known: nan, raise, sigkill"):
            read_faults([tmp_path], [name])
    assert read_faults([], ["worker_killed"]) == []  # that files are needed is told before
