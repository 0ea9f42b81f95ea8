"""The collector's rules also see what a trial wrote before the collector began to watch its file."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from emulated.node_cluster import conditions, node_cluster, script, trial_of
from katib_emulation.kinds import TRIALS
from katib_emulation.node import collector
from katib_emulation.node.file_watch import FileWatch


def test_a_rule_is_met_by_what_was_written_before_the_watch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done = tmp_path / "done"

    def late_watch(folder: Path) -> FileWatch:
        while not done.exists():
            time.sleep(0.01)
        return FileWatch(folder)

    monkeypatch.setattr(collector, "FileWatch", late_watch)
    text = f"echo loss=5 >> $METRICS; echo loss=4 >> $METRICS; echo > {done}; exec sleep 1000"
    rule = {"name": "loss", "value": "2", "comparison": "greater", "startStep": 2}
    with node_cluster(tmp_path) as cluster:
        env = [{"name": "METRICS", "value": "/var/log/katib/metrics.log"}]
        cluster.submit(trial=trial_of(rules=[rule]), command=script(tmp_path, text), container={"env": env})
        assert "Complete" in conditions(cluster.ended())
        assert conditions(cluster.store.get(TRIALS, "job", "default")) == {"EarlyStopped": "TrialEarlyStopped"}
