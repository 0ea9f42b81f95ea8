"""Trials whose metrics are collected: the webhook's changes to the pod, reports at the end, early stopping while it runs."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from emulated.node_cluster import NodeCluster, conditions, script, state_of, trial_of
from katib_emulation.collector import CONTAINER
from katib_emulation.objects import TRIALS
from tuneoff.base.processes import is_alive
from tuneoff_adapters.katib.pod import create_mark
from waiting import until

FILE = [{"name": "METRICS", "value": "/var/log/katib/metrics.log"}]
MEDIAN_STOP = {"name": "loss", "value": "2", "comparison": "greater", "startStep": 2}


def run(cluster: NodeCluster, text: str, trial: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """Run a trial whose command is a shell script; return its Job at the end."""
    cluster.submit(trial=trial, command=script(cluster.folder, text), container={"env": FILE}, **changes)
    return cluster.ended()


def test_a_file_s_metrics_are_reported_when_the_trial_is_complete(cluster: NodeCluster) -> None:
    lines = ["2026-01-01T00:00:01Z loss=0.5 accuracy=0.9", "2026-01-01T00:00:02Z loss=0.25"]
    text = "".join(f"echo {line} >> $METRICS; " for line in lines) + "echo hello"
    assert "Complete" in conditions(run(cluster, text, trial_of()))
    assert cluster.values() == [("loss", "0.5"), ("accuracy", "0.9"), ("loss", "0.25")]
    assert cluster.log(container="training-container") == "hello\n"
    [pod] = cluster.pods()
    assert state_of(pod, CONTAINER)["terminated"]["exitCode"] == 0
    assert cluster.log(container=CONTAINER).endswith("Metrics reported: 3\n")


def test_the_pod_is_changed_as_by_katib_s_webhook(cluster: NodeCluster, tmp_path: Path) -> None:
    run(cluster, "touch $METRICS; echo $KATIB_TRIAL_NAME", trial_of())
    [pod] = cluster.pods()
    labels = pod["metadata"]["labels"]
    assert (labels["katib.kubeflow.org/trial"], labels["katib.kubeflow.org/experiment"]) == ("job", "experiment")
    training, collector = pod["spec"]["containers"]
    assert training["command"] == ["sh", "-c"]
    assert training["args"] == [f"sh {tmp_path}/script.sh && echo completed > /var/log/katib/$$$$.pid"]
    assert collector["name"] == CONTAINER
    assert pod["spec"]["volumes"] == [{"name": "metrics-volume", "emptyDir": {}}]
    assert cluster.log(container="training-container") == "job\n"


def test_a_command_with_a_blank_in_an_argument_breaks_as_in_katib(cluster: NodeCluster) -> None:
    cluster.submit(trial=trial_of(), command=["printf", "%s\\n", "two words"])
    cluster.ended()
    assert cluster.log(container="training-container") == "twonwordsn"  # neither quoted nor kept together


def test_standard_output_s_metrics_are_reported_and_not_in_the_trial_s_own_log(cluster: NodeCluster) -> None:
    job = run(cluster, "echo loss=0.5; echo loss=0.4 >&2", trial_of(kind="StdOut"))
    assert "Complete" in conditions(job)
    assert cluster.values() == [("loss", "0.5"), ("loss", "0.4")]
    assert cluster.log(container="training-container") == ""


def test_a_missing_metrics_file_fails_the_collector_alone(cluster: NodeCluster) -> None:
    assert "Failed" in conditions(run(cluster, "true", trial_of()))
    [pod] = cluster.pods()
    assert state_of(pod)["terminated"]["exitCode"] == 0
    assert state_of(pod, CONTAINER)["terminated"]["exitCode"] == 255
    assert "failed to open the file: open /var/log/katib/metrics.log: no such file" in cluster.log(container=CONTAINER)


def epochs(*losses: float) -> str:
    """A script that reports losses, with pauses in which they can be seen."""
    return "; ".join(f"echo loss={loss} >> $METRICS; sleep 0.05" for loss in losses)


def until_collector_says(text: str) -> str:
    """A script that waits for words in the collector's log."""
    return f"until grep -q '{text}' ${{METRICS%/*}}/../../logs/{CONTAINER}.log 2>/dev/null; do sleep 0.01; done"


def test_a_trial_that_meets_its_rule_is_stopped_and_counts_what_it_has(cluster: NodeCluster, tmp_path: Path) -> None:
    text = f"echo $$ > {tmp_path}/pid; {epochs(5, 4)}; echo waits; exec sleep 1000"
    job = run(cluster, text, trial_of(rules=[MEDIAN_STOP]))
    assert "Complete" in conditions(job)
    assert cluster.values() == [("loss", "5"), ("loss", "4")]
    trial = cluster.store.get(TRIALS, "job", "default")
    assert conditions(trial) == {"EarlyStopped": "TrialEarlyStopped"}
    assert "Training Container was Early Stopped" in cluster.log(container="training-container")
    assert not is_alive(int((tmp_path / "pid").read_text()))
    [pod] = cluster.pods()
    assert state_of(pod)["terminated"]["exitCode"] == state_of(pod, CONTAINER)["terminated"]["exitCode"] == 0


def test_early_stopping_keeps_the_trial_s_other_conditions(cluster: NodeCluster, tmp_path: Path) -> None:
    cluster.submit(
        trial=trial_of(rules=[MEDIAN_STOP]), command=script(tmp_path, f"{epochs(5)}; sleep 1000"), container={"env": FILE}
    )
    running = {"type": "Running", "status": "True", "reason": "TrialRunning"}
    cluster.pod_in("Running")
    cluster.store.update(TRIALS, "job", "default", lambda trial: trial.update(status={"conditions": [running]}))
    metrics = tmp_path / "pods" / cluster.pods()[0]["metadata"]["uid"] / "volumes" / "metrics-volume" / "metrics.log"
    until(metrics.exists)
    with metrics.open("a") as file:
        file.write("loss=9\n")
    cluster.ended()
    found = cluster.store.get(TRIALS, "job", "default")["status"]["conditions"]
    assert [(entry["type"], entry["status"]) for entry in found] == [("Running", "True"), ("EarlyStopped", "True")]


def test_a_shell_with_two_children_cannot_be_stopped_and_loses_its_collector(cluster: NodeCluster, tmp_path: Path) -> None:
    two = f"sleep 1000 & sh {tmp_path}/script.sh"
    script(tmp_path, f"{epochs(5, 4)}; {until_collector_says('Multiple children')}")
    cluster.submit(trial=trial_of(rules=[MEDIAN_STOP]), command=["sh", "-c", two], container={"env": FILE})
    assert "Failed" in conditions(cluster.ended())
    assert "Multiple children processes are not supported" in cluster.log(container=CONTAINER)
    assert cluster.values() == []


def test_a_mark_that_the_program_made_first_changes_neither_a_stop_nor_a_failure(cluster: NodeCluster, tmp_path: Path) -> None:
    code = (
        f"import os, sys; from {create_mark.__module__} import create_mark; create_mark(os.environ['METRICS'], int(sys.argv[1]))"
    )
    (tmp_path / "mark.py").write_text(code)
    make = f"{sys.executable} {tmp_path}/mark.py $PPID"
    job = run(cluster, f"{make}; {epochs(5, 4)}; exec sleep 1000", trial_of(rules=[MEDIAN_STOP]))
    assert "Complete" in conditions(job)
    assert conditions(cluster.store.get(TRIALS, "job", "default")) == {"EarlyStopped": "TrialEarlyStopped"}
    command = script(tmp_path, f"{make}; exit 3", "failing.sh")
    cluster.submit("failing", trial=trial_of("failing", rules=[MEDIAN_STOP]), command=command, container={"env": FILE})
    assert "Failed" in conditions(cluster.ended("failing"))
    assert cluster.log("failing", "training-container") == "Training Container was Failed\n"  # and no complaint of the shell
    assert "unable to find marker: completed in contents: running" in cluster.log("failing", CONTAINER)


def test_an_empty_value_ends_the_collector_of_a_trial_with_rules(cluster: NodeCluster) -> None:
    text = f"echo loss=nan > $METRICS; {until_collector_says('Unable to parse')}"
    job = run(cluster, text, trial_of(rules=[MEDIAN_STOP]))
    assert "Failed" in conditions(job)
    assert "Unable to parse value" in cluster.log(container=CONTAINER)


def test_a_pod_whose_trial_is_unknown_or_unfit_is_refused_as_by_the_webhook(cluster: NodeCluster) -> None:
    trial = trial_of()
    trial["spec"]["primaryContainerName"] = "other"
    cluster.submit(trial=trial)
    [message] = until(lambda: cluster.events("FailedCreate"))
    assert message.startswith(
        'Error creating: admission webhook "mutator.pod.katib.kubeflow.org" denied the request: Unable to find'
    )
    assert not cluster.pods()
