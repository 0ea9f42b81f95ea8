"""What a worker in a pod and its coordinator say to each other, among whatever a workload prints."""

from __future__ import annotations

import pytest

from tuneoff.run.trial.run_trial import TrialOutcome
from tuneoff_adapters.kubernetes.messages import answer_line, answer_of, packed, unpacked


@pytest.mark.parametrize("content", ["ready", [2, 0.5], TrialOutcome(state="pruned", epochs=2, value=0.25, cause="a\nb")])
def test_an_answer_is_one_line_and_comes_as_it_was(content: object) -> None:
    line = answer_line(content)
    assert line.count(b"\n") == 1
    assert answer_of(line.rstrip(), (TrialOutcome,)) == content


def test_a_task_is_one_word() -> None:
    task = ("t00001", {"x": 0.1, "kind": "a b"}, 2)
    assert " " not in packed(task)
    assert unpacked(packed(task)) == task


@pytest.mark.parametrize(
    "line",
    [
        b'{"type":"epoch"}',
        b'{"answer":',
        b'{"answer":["SystemExit",{}]}',
        b'{"answer":["TrialOutcome",{"state":"completed","nonsense":1}]}',
        b'{"answer":["TrialOutcome",7]}',
        b'{"answer":7}',
    ],
)
def test_a_line_that_only_looks_like_an_answer_is_none(line: bytes) -> None:
    assert answer_of(line, (TrialOutcome,)) is None
