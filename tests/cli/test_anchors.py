"""The anchors of tasks: each is measured by itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from benchmarks import anchors

FILE = """
workload: {name: surrogate, options: {noise: 0.0}}
adapters: [serial, serial]
budget: {trials: 4, epochs_per_trial: 1}
sampler: default
tasks:
  noisy: {workload.options.noise: 0.5}
  plain: {}
  longer: {budget.trials: 6, anchors: {random_search: 1, best_known: 0, source: older}}
"""


def test_a_task_is_measured_without_what_the_others_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[dict[str, Any]] = []

    def values(content: dict[str, Any]) -> tuple[list[float], str]:
        seen.append(content)
        return [float(content["budget"]["trials"])], "min"

    monkeypatch.setattr(anchors, "values", values)
    path = tmp_path / "file.yaml"
    path.write_text(FILE)
    found = anchors.anchors(path, 3, 10, None)["tasks"]
    assert [one["workload"]["options"]["noise"] for one in seen] == [0.5, 0.5, 0.0, 0.0, 0.0, 0.0]
    assert [one["budget"]["trials"] for one in seen] == [4, 40, 4, 40, 6, 60]
    assert {one["sampler"] for one in seen} == {"random"}
    assert not any("anchors" in one for one in seen)
    assert (found["longer"]["anchors"]["random_search"], found["longer"]["anchors"]["best_known"]) == (6.0, 6.0)


@pytest.mark.slow
def test_anchors_are_of_real_runs_and_may_be_put_into_a_file(tmp_path: Path) -> None:
    path = tmp_path / "file.yaml"
    path.write_text(FILE)
    (found,) = anchors.anchors(path, 2, 2, ["plain"])["tasks"].values()
    assert found["anchors"]["best_known"] <= found["anchors"]["random_search"]
    assert "median of 2 seeds with 4 trials" in found["anchors"]["source"]
