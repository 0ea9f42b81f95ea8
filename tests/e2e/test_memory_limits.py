"""What a trial really gets of memory, under the limits that the record names; of processors: test_worker_limits."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

import hungry_workload
from contract.runs import Made, make
from hungry_workload import MEMORY_MB
from tuneoff.base.space import Categorical, Float, SearchSpace
from tuneoff.experiment.spec import Budget, ExperimentSpec, Objective, Strategy, Workers, WorkloadSpec

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def _importable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(Path(hungry_workload.__file__).parent))


ALL = ("in a child's child", "shared", "nothing", "nothing")


def feed(results: Path, memory_mb: float | None = MEMORY_MB, takes: Sequence[str] = ALL) -> Made:
    """Run a trial whose child's child takes too much, one that shares pages with its children, and two that take nothing."""
    configurations = [{"takes": text, "learning_rate": (number + 1) / 10} for number, text in enumerate(takes)]
    rates = Float(low=0.0, high=1.0)
    experiment = ExperimentSpec(
        workload=WorkloadSpec(name="hungry", target="hungry_workload:Hungry"),
        search_space=SearchSpace({"takes": Categorical(choices=tuple(dict.fromkeys(takes))), "learning_rate": rates}),
        objective=Objective(metric="validation_loss", mode="min"),
        sampler=Strategy(name="fixed"),
        pruner=Strategy(name="none"),
        configurations=tuple(configurations),
        budget=Budget(trials=len(takes), epochs_per_trial=3),
        workers=Workers(count=2, memory_mb=memory_mb),
    )
    return make("serial", experiment, results)


def check_fed(made: Made, by: str) -> None:
    ends = {trial.configuration["learning_rate"]: trial for trial in made.record.trials}
    over = ends.pop(0.1)
    assert (over.state, over.cause) == ("failed", f"out of memory: more than {MEMORY_MB:g} MB ({by})")
    assert over.charged == "workload"
    assert [trial.state for trial in ends.values()] == ["completed"] * 3
    assert made.record.status == "done"
    assert "declared_mismatch" not in {flag.name for flag in made.record.flags}
    assert [text for text in made.left if not text.startswith("temporary")] == []


def test_the_memory_of_a_trial_is_that_of_all_its_processes(tmp_path: Path) -> None:
    made = feed(tmp_path)
    has_groups = made.record.environment["limits"]["memory"].startswith("cgroup")
    check_fed(made, "control group" if has_groups else "watchdog")


def test_what_a_child_of_a_trial_holds_is_seen_in_its_tree_and_in_table_1(tmp_path: Path) -> None:
    """A trial's process starts one of 300 MB, as a loader of data does: its own peak does not tell."""
    made = feed(tmp_path, memory_mb=None, takes=["300 MB in a child", "nothing"])
    own, tree = (made.record.metrics[f"memory.{name}"].value for name in ("peak_rss", "trial_tree_peak_rss"))
    assert own is not None
    assert tree is not None
    assert own < 290
    assert 300 < tree < own + 400
    (found,) = [variable.found for variable in made.record.declared if variable.symbol == "wmem"]
    assert found["tree_peak_rss_mb"] == pytest.approx(tree, abs=1)
    assert found["peak_rss_mb"] == pytest.approx(own, abs=1)
    control = feed(tmp_path / "control", memory_mb=None, takes=["nothing", "nothing"]).record.metrics
    assert (control["memory.trial_tree_peak_rss"].value or 0) < 290
