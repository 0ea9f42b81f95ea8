"""The rights that deploy asks for are those that a whole run uses: none is missing, and none is asked for without need."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from adapters.katib.katib_rights import GIVEN, OWN, Rights, needed, optional, used
from contract.runs import Made
from e2e.faulty_cluster import NAMESPACES, FaultyCluster, faulty_cluster, sleeping
from emulated.served import INJECTED
from tuneoff.experiment.spec import Failures, Timeouts
from tuneoff_adapters.katib.options import KatibOptions

pytestmark = pytest.mark.slow

AFTER_A_LOST_ANSWER: Rights = {("", "configmaps", "get")}  # to see whose it is; see adapters/katib/test_connection.py


def run_with_a_limit(cluster: FaultyCluster, folder: Path, **more: Any) -> Made:
    """Run trials that take longer than they may: their pods are deleted, which most runs never do."""
    timeouts = Timeouts(trial_seconds=1, silence_seconds=30, trials_seconds=100)
    spec = sleeping(trials=2, epochs=400, timeouts=timeouts, failures=Failures(max_failed_trials=2))
    return cluster.make(folder / "results", spec, **more)


@pytest.mark.parametrize("options", [OWN, GIVEN], ids=["own namespace", "given namespace"])
def test_a_run_uses_exactly_the_rights_that_are_asked_for(options: KatibOptions, tmp_path: Path) -> None:
    with faulty_cluster(tmp_path / "cluster") as cluster:
        if options.namespace is not None:
            cluster.server.ask("POST", NAMESPACES, {"metadata": {"name": options.namespace, "labels": INJECTED}})
        made = run_with_a_limit(cluster, tmp_path, **({"namespace": options.namespace} if options.namespace else {}))
        assert len(made.record.trials) == 2, made.record.reason
        assert made.left == ()
        found = used(cluster.proxy.seen)
    assert found - needed(options) - optional(options) == set(), "used without having asked for it"
    assert needed(options) - found <= AFTER_A_LOST_ANSWER, "asked for without need"
    assert optional(options) - found == set(), "in the role without need"
