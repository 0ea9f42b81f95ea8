"""The built-in adapters: what `draw` gives is what a real run's trials receive, and it is accepted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from command_line import write_file
from tuneoff.base.dimension import MAX_POINTS
from tuneoff.base.identity import canonical_json
from tuneoff.cli.selection import overridden_plan
from tuneoff.trust.space_test.draw import DRAWN, Drawing
from tuneoff.trust.space_test.judge import Sample, judge
from tuneoff.trust.space_test.verify import SpaceTarget, draw_in_process, receive, targets

pytestmark = pytest.mark.slow(first=True)

DRAWS, TRIALS, SECONDS = 400, 6, 300.0
FILE: dict[str, Any] = {
    "workload": "null",
    "search_space": {
        "rate": {"type": "float", "low": 1e-5, "high": 0.1, "log": True},
        "width": {"type": "int", "low": 8, "high": 1024, "log": True},
        "count": {"type": "int", "low": 0, "high": 9},
        "kind": {"type": "categorical", "choices": ["a", [1, 2], None]},
        "ordered": {"type": "ordered", "values": [16, 32, 48, 128]},
        "equal": {"type": "categorical", "choices": [1, 1.0, True, "1", 2**64]},
        "wide": {"type": "int", "low": 0, "high": MAX_POINTS - 1},
        "step": {"type": "float", "low": 0.022943223880069138, "high": 0.457943223880069138, "step": 0.001},
        "steep": {"type": "float", "low": 5e-324, "high": 1e308, "log": True},
        "fixed": {"type": "constant", "value": 3},
    },
    "budget": {"trials": 100},
    "adapters": [
        *("serial", "optuna", "ray-tune", "syne-tune", "rustuna", "nevergrad", "hyperopt", "flaml", "smac"),
        {"name": "katib", "platform": "emulated"},
    ],
}
ADAPTERS = ["serial", "optuna", "ray-tune", "syne-tune", "rustuna", "nevergrad", "hyperopt", "flaml", "smac", "katib@emulated"]
NOT_FOR = {"smac": "steep"}  # its floats have 13 decimals


def target_of(name: str, folder: Path, **replaced: Any) -> SpaceTarget:
    path = write_file(folder / "experiment.yaml", {**FILE, **replaced})
    (target,) = targets(overridden_plan(path, adapters=[name]), DRAWS)
    assert target.run.skip_reason is None
    assert target.unprobed == ""
    return target


def drawn(target: SpaceTarget, seed: int = 0, count: int = DRAWS) -> Drawing:
    answer = draw_in_process(target.run.spec, count, seed, SECONDS)
    assert (answer.state, answer.text) == (DRAWN, "")
    return answer


@pytest.mark.parametrize("name", ADAPTERS)
def test_draws_are_what_a_real_runs_trials_receive_and_are_accepted(name: str, tmp_path: Path) -> None:
    space = {key: dimension for key, dimension in FILE["search_space"].items() if NOT_FOR.get(name) != key}
    target = target_of(name, tmp_path, search_space=space)
    answer = drawn(target)
    plan = overridden_plan(tmp_path / "experiment.yaml", adapters=[name])
    received = receive(target.run, plan, TRIALS, 0, "", seeds=1)
    assert (received.failure, received.changed) == (None, 0)
    first = answer.configurations[:TRIALS]
    assert sorted(map(canonical_json, received.by_seed[0])) == sorted(map(canonical_json, first))
    judgement = judge(target.space, Sample(by_seed={0: answer.configurations}, mapping=answer.problems))
    assert (judgement.verdict, judgement.findings) == ("accepted", ())
    assert judgement.mapping_tested


def test_optunas_workers_have_samplers_that_differ(tmp_path: Path) -> None:
    answer = drawn(target_of("optuna", tmp_path, workers={"count": 3}), count=300)
    assert len(set(map(canonical_json, answer.configurations))) == 300


def test_katib_on_a_cluster_draws_only_in_runs(tmp_path: Path) -> None:
    adapters = [{"name": "katib", "platform": "kubernetes", "options": {"image": "example.org/trial:1"}}]
    target = target_of("katib", tmp_path, adapters=adapters)
    answer = draw_in_process(target.run.spec, 100, 0, SECONDS)
    assert answer.state == "not_offered"
    assert answer.text == "the services of a cluster's Katib answer a running Experiment alone"
    assert answer.problems == {}  # what it would ask of the cluster is tested all the same
