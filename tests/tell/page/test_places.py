"""A link of the page never leads to nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from builders.made_results import Entry, results
from tuneoff.judge.answers.compute import answers
from tuneoff.tell.page.anchors import Places

pytest.importorskip("scipy")


def test_runs_that_stand_for_others_are_where_these_lead() -> None:
    def fast(seed: int) -> dict[str, float]:
        return {"time.jct": 1000.0 + seed}

    made = results(
        [
            Entry("a", fast),
            Entry("b", fast),
            Entry("a", fast, sampler="default", same_as="random"),
            Entry("b", fast, sampler="default"),
        ]
    )
    found = answers(made)
    places = Places(made, found, Path())
    links = {(group.label, group.scope.sampler): places.group(group.label, group.scope) for group in found.groups}
    assert links["a", "default"] == links["a", "random"] != ""
    assert len(set(links.values())) == 3
    (skipped,) = [group for group in found.groups if group.same_as is not None]
    assert {places.group_of(run.run_id) for run in skipped.runs} == {links["a", "random"]}
