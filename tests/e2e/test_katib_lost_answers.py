"""Katib's controller throws an answer of its suggestion service away: each listed configuration is trained once all the same."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from contract.runs import Made, fixed
from e2e.faulty_cluster import faulty_cluster, sleeping
from tuneoff.base.identity import configuration_digest
from tuneoff.experiment.spec import Budget, Strategy, Workers
from tuneoff.record.endings import FOREIGN, MISSING
from tuneoff_adapters.katib.trial_ledger import REPEATED

pytestmark = pytest.mark.slow

TRIALS = 10
LOSING = ("--lose-answers", "2")


def made_with(folder: Path, *options: str, sampler: str = "fixed") -> tuple[Made, list[str]]:
    """Return a run by Katib on an emulated cluster with these options, and what changed the cluster."""
    given: dict[str, Any] = fixed(TRIALS) if sampler == "fixed" else {"sampler": Strategy(name=sampler)}
    given["workers"] = Workers(count=3)
    given["budget"] = Budget(trials=TRIALS, epochs_per_trial=2)
    with faulty_cluster(folder, *options) as cluster:
        made = cluster.make(folder / "results", sleeping(TRIALS, 2, 0.1, **given))
        assert cluster.namespaces() == []
        return made, cluster.changes()


def raised(changes: list[str]) -> int:
    return sum(change.startswith("PATCH") and "/experiments/" in change for change in changes)


def test_each_listed_configuration_is_trained_once_though_answers_are_lost(tmp_path: Path) -> None:
    made, changes = made_with(tmp_path, *LOSING)
    record = made.record
    assert (record.status, record.reason, made.left) == ("done", None, ())
    given = {configuration_digest(configuration) for configuration in record.run_spec().experiment.configurations}
    assert Counter(trial.digest for trial in record.trials) == dict.fromkeys(given, 1)
    assert {trial.state for trial in record.trials} == {"completed"}
    flags = {flag.name: flag for flag in record.flags}
    assert flags[REPEATED].count == raised(changes) > 0
    assert "lost an answer of the suggestion service" in flags[REPEATED].text
    assert not {FOREIGN, MISSING, "over_budget", "declared_mismatch"} & set(flags)


def test_without_a_lost_answer_katib_is_asked_for_no_more_trials(tmp_path: Path) -> None:
    made, changes = made_with(tmp_path)
    assert made.record.status == "done"
    assert raised(changes) == 0
    assert REPEATED not in {flag.name for flag in made.record.flags}


def test_points_that_are_lost_of_other_samplers_cost_no_trial(tmp_path: Path) -> None:
    made, _ = made_with(tmp_path, *LOSING, sampler="multivariate-tpe")
    assert made.record.status == "done"
    assert len({trial.digest for trial in made.record.trials}) == TRIALS
