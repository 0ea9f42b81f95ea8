"""What is wrong with the way to a cluster is told by the real command in one line, in under 15 s, before anything is made."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path

import pytest

from e2e.faulty_cluster import FaultyCluster, faulty_cluster
from e2e.katib_cluster import Compare
from tuneoff.measure.stored import read_runs

pytestmark = pytest.mark.slow

MOST_SECONDS = 15.0


def test_each_wrong_way_to_a_cluster_is_one_line_in_time_before_anything_is_made(tmp_path: Path) -> None:
    with contextlib.ExitStack() as clusters:

        def cluster(name: str, *options: str) -> FaultyCluster:
            return clusters.enter_context(faulty_cluster(tmp_path / name, *options))

        good, away, hanging, bare = cluster("good"), cluster("away"), cluster("hanging"), cluster("bare", "--without-katib")
        away.proxy.refuse()
        hanging.proxy.is_hanging = True
        content = json.loads(away.kubeconfig.read_text())
        content["clusters"] = json.loads(bare.kubeconfig.read_text())["clusters"]
        content["users"][0]["user"]["token"] = "old"
        stale = tmp_path / "stale"
        stale.write_text(json.dumps(content))
        wrong = [
            (away.options(), (away.proxy.url, "cannot be reached (connection refused)")),
            (hanging.options(), (hanging.proxy.url, "cannot be reached (no answer in time")),
            (bare.options(), ("Katib is not installed", "kubeflow.org")),
            (bare.options(kubeconfig="/nowhere/config"), ("there is no kubeconfig at /nowhere/config",)),
            (bare.options(context="no-such-context"), ("(context 'no-such-context')",)),
            (bare.options(kubeconfig=str(stale)), ("does not accept the kubeconfig's credentials",)),
        ]
        entries = [
            {"name": "katib", "platform": "kubernetes", "options": options} for options, _ in [*wrong, (good.options(), ())]
        ]
        budget = {"trials": 2, "epochs_per_trial": 1}
        compare = Compare(tmp_path, adapters=entries, workload="surrogate", sampler="random", budget=budget, workers={"count": 1})
        answer = compare.run()
        records = {json.dumps(dict(record.run_spec().options), sort_keys=True): record for record in read_runs(compare.results)}
        lines = [line for line in answer.err.splitlines() if line.startswith("tuneoff: ")]
        for options, parts in wrong:
            record = records.pop(json.dumps(options, sort_keys=True))
            assert (record.status, record.charged) == ("failed", "infrastructure"), record.reason
            assert (record.steps[-1].ended_ns or 0) / 1e9 < MOST_SECONDS
            assert len([line for line in lines if all(part in line for part in parts)]) == 1, parts
        assert answer.code == 1
        assert "Traceback" not in answer.err + answer.out
        assert [(one.changes(), one.namespaces()) for one in (away, hanging, bare)] == [([], [])] * 3
        assert [record.status for record in records.values()] == ["done"]  # control: the probe sees what a run makes
        assert any(change.startswith("POST /api/v1/namespaces") for change in good.changes())
