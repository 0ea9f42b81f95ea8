"""Katib's controller throws an answer of its suggestion service away: each listed configuration is trained once all the same."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from contract.runs import fixed
from e2e.faulty_cluster import faulty_cluster, sleeping
from e2e.held_workload import RELEASED
from tuneoff.base.identity import configuration_digest
from tuneoff.experiment.spec import Strategy, Timeouts, Workers, WorkloadSpec
from tuneoff.record.endings import FOREIGN, MISSING
from tuneoff.run.progress import LiveRun
from tuneoff_adapters.katib.trial_ledger import REPEATED

pytestmark = pytest.mark.slow

TRIALS = 10
LOSING = ("--lose-answers", "2")
PATIENT = Timeouts(trial_seconds=240, silence_seconds=240, trials_seconds=240)
TESTS = str(Path(__file__).parents[1])  # in which the pods find a workload


def raised(changes: list[str]) -> int:
    return sum(change.startswith("PATCH") and "/experiments/" in change for change in changes)


def test_each_listed_configuration_is_trained_once_though_answers_are_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One trial of two at work lasts until its configuration is given again: no speed of a machine changes what Katib answers.

    Every other configuration is lost. Once all were given, each answer is drawn from those lost and the one at work: by the
    experiment's seed, in the order in which they were given.
    """
    monkeypatch.setenv("PYTHONPATH", TESTS)
    hold = tmp_path / "hold"
    hold.mkdir()
    workload = WorkloadSpec(name="held", target="e2e.held_workload:Held", options={"epoch_seconds": 0.0, "folder": str(hold)})
    spec = replace(sleeping(TRIALS, 2, timeouts=PATIENT, **fixed(TRIALS)), workload=workload)
    with faulty_cluster(tmp_path, *LOSING) as cluster:

        def release(live: LiveRun, folder: Path) -> bool:
            if is_due := raised(cluster.changes()) > 0 or live.completed == TRIALS - 1:
                (hold / RELEASED).touch()
            return is_due

        made = cluster.make(tmp_path / "results", spec, act=release)
        changes = cluster.changes()
        assert cluster.namespaces() == []
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
    with faulty_cluster(tmp_path) as cluster:
        made = cluster.make(tmp_path / "results", sleeping(TRIALS, 2, 0.1, workers=Workers(count=3), **fixed(TRIALS)))
    assert made.record.status == "done"
    assert raised(cluster.changes()) == 0
    assert REPEATED not in {flag.name for flag in made.record.flags}


def test_points_that_are_lost_of_other_samplers_cost_no_trial(tmp_path: Path) -> None:
    sampler = Strategy(name="random")
    with faulty_cluster(tmp_path, *LOSING) as cluster:
        made = cluster.make(tmp_path / "results", sleeping(TRIALS, 2, 0.1, workers=Workers(count=3), sampler=sampler))
    assert made.record.status == "done"
    assert len({trial.digest for trial in made.record.trials}) == TRIALS
