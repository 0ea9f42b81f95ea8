"""What fails at a limit of time is judged on runs that are made again; the text says what the machine did."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from builders.check_evidence import evidence, made, trial
from trust.check.controls import planted_surroundings
from tuneoff.base.findings import Finding, chosen
from tuneoff.measure.use import SHARE
from tuneoff.record.metric_value import metric_value
from tuneoff.trust.check.checks import CHECKS
from tuneoff.trust.check.evidence import AdapterCheck, AdapterEvidence
from tuneoff.trust.check.make import AGAIN, check_adapter, subject_of, tried_again

BUSY, QUIET = 93.0, 1.0  # % of the processors that others used
SILENT = trial(0, None, "timed_out", level=0.5, cause="timed out: silent for 4 s")
SOUND = trial(0, 0.5)
LOST = Finding(verdict="not tested", text="run faulty was not made")


def _faulty(*trials: Any, state: float = BUSY) -> AdapterEvidence:
    return evidence(made("faulty", trials, record_fields={"metrics": {SHARE: metric_value(state, "%")}}))


NOT_MADE = AdapterEvidence(subject=_faulty().subject, missing={"faulty": LOST})
KILLED_TWICE = _faulty(trial(0, 0.5, act="kill", attempts=(SOUND.attempts[0],) * 3))
BOTH = ["other programs used 93 % of", "other programs used 1 % of", "silent for 4 s"]


@pytest.mark.parametrize(
    ("check_id", "first", "second", "verdict", "is_made_again", "words"),
    [
        ("failures.others-intact", _faulty(SILENT), _faulty(SOUND, state=QUIET), "passed", True, BOTH),
        ("failures.others-intact", _faulty(SILENT), _faulty(SILENT, state=QUIET), "failed", True, BOTH),
        ("failures.others-intact", _faulty(SILENT), NOT_MADE, "failed", True, []),
        ("failures.others-intact", _faulty(SOUND), _faulty(SILENT), "passed", False, []),
        ("retries.at-most", KILLED_TWICE, _faulty(SOUND), "failed", False, []),  # it rests on no limit of time
    ],
    ids=["missed by a busy machine", "failed twice", "not made again", "passed", "no limit of time"],
)
def test_what_fails_at_a_limit_of_time_is_tried_again_and_its_text_has_both_tries(
    check_id: str, first: AdapterEvidence, second: AdapterEvidence, verdict: str, is_made_again: bool, words: list[str]
) -> None:
    asked: list[str] = []

    def make(late: Sequence[AdapterCheck]) -> AdapterEvidence:
        asked.extend(one.id for one in late)
        return second

    (finding,) = tried_again(chosen(CHECKS, [check_id]), first, make)
    assert (finding.verdict, asked) == (verdict, [check_id] * is_made_again)
    for word in words:
        assert word in finding.text


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_planted_defect_in_a_check_with_a_limit_of_time_fails_at_both_tries(tmp_path: Path) -> None:
    keep = tmp_path / "keep"
    with planted_surroundings(tmp_path / "home"):
        subject = subject_of("trust.check.planted.undeploying:RemovesTwice")
        report = check_adapter(subject, chosen(CHECKS, ["undeploy.twice"]), keep)
    (finding,) = report.findings
    assert finding.verdict == "failed"
    assert finding.text.count("other programs used") == 2
    assert (keep / AGAIN / "undeployed-twice" / "answer.json").exists()
