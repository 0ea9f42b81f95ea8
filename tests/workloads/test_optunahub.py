"""The workload `optunahub`: a problem from a local registry is a trial of one epoch."""

from __future__ import annotations

from pathlib import Path

import pytest

from trial_runs import trial_context
from tuneoff.errors import ExperimentError
from tuneoff.run.trial.run_trial import Decision, TrialOutcome, run_trial
from tuneoff_workloads.optunahub import OptunaHub

pytest.importorskip("optunahub")
PROBLEM = """
import optuna
import optunahub

class Problem(optunahub.benchmarks.BaseProblem):
    search_space = {"x": optuna.distributions.FloatDistribution(0, 1)}
    directions = [optuna.study.StudyDirection.MINIMIZE]

    def __init__(self, best):
        self.best = best

    def evaluate(self, params):
        return (params["x"] - self.best) ** 2
"""


def options_of(folder: Path) -> dict[str, object]:
    """Write a registry with one problem, and return the options that name it."""
    package = folder / "registry" / "benchmarks" / "bowl"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(PROBLEM)
    return {"package": "benchmarks/bowl", "registry": str(folder / "registry"), "arguments": {"best": 0.25}}


def run(folder: Path, options: dict[str, object]) -> TrialOutcome:
    context = trial_context(
        folder, workload="tuneoff_workloads.optunahub:OptunaHub", workload_options=options, metric="value", epochs=1
    )
    return run_trial(context, "t0", {"x": 0.75}, lambda epoch, metrics: Decision.CONTINUE)


def test_a_problem_of_a_local_registry_gives_its_value(tmp_path: Path) -> None:
    assert run(tmp_path, options_of(tmp_path)) == TrialOutcome(state="completed", epochs=1, value=0.25, best_epoch=1)


def test_a_package_that_is_not_there_fails_the_trial_with_its_name(tmp_path: Path) -> None:
    outcome = run(tmp_path, {**options_of(tmp_path), "package": "benchmarks/nowhere"})
    assert outcome.state == "failed"
    assert "benchmarks/nowhere" in (outcome.cause or "")


def test_unknown_options_are_refused() -> None:
    with pytest.raises(ExperimentError, match="but got pakage"):
        OptunaHub({"pakage": "benchmarks/bbob"})


def test_a_bundle_loads_no_package() -> None:
    assert OptunaHub.refuse_foreign({"package": "anything"}) == "it loads and runs a package"
