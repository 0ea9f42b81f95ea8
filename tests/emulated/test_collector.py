"""A trial's metrics: the webhook's changes to its pod, what is read of its file, reports at the end, early stopping."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from emulated.node_cluster import NodeCluster, conditions, script, state_of, trial_of
from katib_emulation.collector import (
    CONTAINER,
    UNAVAILABLE,
    ZERO_TIME,
    CollectorError,
    CollectorSettings,
    Observation,
    Observations,
    StopRule,
    moment,
)
from katib_emulation.objects import TRIALS
from tuneoff_adapters.katib.pod import create_mark
from tuneoff_adapters.kubernetes import layout

FILE = [{"name": "METRICS", "value": "/var/log/katib/metrics.log"}]
MEDIAN_STOP = {"name": "loss", "value": "2", "comparison": "greater", "startStep": 2}
TEXT = CollectorSettings("t", ("loss", "accuracy"))
TIME = "2026-01-01T12:00:00.123456Z"


def run(cluster: NodeCluster, text: str, trial: dict[str, Any], name: str = "job") -> set[str]:
    """Run a trial whose command is a shell script; return the conditions of its Job at the end."""
    cluster.submit(name, trial=trial, command=script(cluster.folder, text, f"{name}.sh"), container={"env": FILE})
    return set(conditions(cluster.ended(name)))


def test_a_file_s_metrics_are_reported_when_the_trial_is_complete(cluster: NodeCluster, tmp_path: Path) -> None:
    lines = ["2026-01-01T00:00:01Z loss=0.5 accuracy=0.9", "2026-01-01T00:00:02Z loss=0.25"]
    text = "".join(f"echo {line} >> $METRICS; " for line in lines) + "echo $KATIB_TRIAL_NAME"
    assert "Complete" in run(cluster, text, trial_of())
    assert cluster.values() == [("loss", "0.5"), ("accuracy", "0.9"), ("loss", "0.25")]
    assert cluster.log(container="training-container") == "job\n"
    [pod] = cluster.pods()
    assert state_of(pod, CONTAINER)["terminated"]["exitCode"] == 0
    labels = pod["metadata"]["labels"]
    assert (labels["katib.kubeflow.org/trial"], labels["katib.kubeflow.org/experiment"]) == ("job", "experiment")
    training, _ = pod["spec"]["containers"]
    assert training["args"] == [f"sh {tmp_path}/job.sh && echo completed > /var/log/katib/$$$$.pid"]


def test_standard_output_s_metrics_are_reported_and_not_in_the_trial_s_own_log(cluster: NodeCluster) -> None:
    assert "Complete" in run(cluster, "echo loss=0.5; echo loss=0.4 >&2", trial_of(kind="StdOut"))
    assert cluster.values() == [("loss", "0.5"), ("loss", "0.4")]
    assert cluster.log(container="training-container") == ""


def test_a_missing_metrics_file_fails_the_collector_alone(cluster: NodeCluster) -> None:
    assert "Failed" in run(cluster, "true", trial_of())
    [pod] = cluster.pods()
    assert [state_of(pod, name)["terminated"]["exitCode"] for name in ("training-container", CONTAINER)] == [0, 255]
    assert "No such file" in cluster.log(container=CONTAINER)


def test_a_mark_that_the_program_made_first_changes_neither_a_stop_nor_a_failure(cluster: NodeCluster, tmp_path: Path) -> None:
    code = f"import os, sys; from {create_mark.__module__} import create_mark; "
    (tmp_path / "mark.py").write_text(f"{code}create_mark(os.environ['METRICS'], int(sys.argv[1]))")
    make = f"{sys.executable} {tmp_path}/mark.py $PPID"
    epochs = "echo loss=5 >> $METRICS; sleep 0.05; echo loss=4 >> $METRICS"
    assert "Complete" in run(cluster, f"{make}; {epochs}; exec sleep 1000", trial_of(rules=[MEDIAN_STOP]))
    assert cluster.values() == [("loss", "5"), ("loss", "4")]
    assert layout.EARLY_STOPPED in cluster.log(container="training-container")
    assert conditions(cluster.store.get(TRIALS, "job", "default")) == {"EarlyStopped": "TrialEarlyStopped"}
    assert "Failed" in run(cluster, f"{make}; exit 3", trial_of("failing", rules=[MEDIAN_STOP]), "failing")
    assert cluster.log("failing", "training-container") == f"{layout.FAILED}\n"  # and no complaint of the shell
    assert "unable to find marker: completed in contents: running" in cluster.log("failing", CONTAINER)


@pytest.mark.parametrize(
    ("line", "value"),
    [
        ("loss = -7.53e-05", "-7.53e-05"),
        ("loss=.98", ".98"),
        ("loss=1E0", "1E0"),
        ("loss=nan", ""),
        ("loss=-inf", "-"),
        ("val/loss=0.5", "0.5"),
        ("epoch 3: loss=0.25, more", "0.25"),
        ("loss: 0.3", UNAVAILABLE),
        ("val_loss=0.3", UNAVAILABLE),
        ("accuracy=0.9", UNAVAILABLE),
    ],
)
def test_the_default_filter_reads(line: str, value: str) -> None:
    assert TEXT.observations(line) == [Observation(ZERO_TIME, "loss", value)]


def test_many_metrics_of_a_line_have_its_time_and_own_filters_replace_the_default_one() -> None:
    found = TEXT.observations(f"{TIME} loss=0.5 accuracy=0.9 other=1")
    assert found == [Observation(TIME, "loss", "0.5"), Observation(TIME, "accuracy", "0.9")]
    own = CollectorSettings("t", ("loss",), filters=(r"(\w+) is ([0-9.]+)",))
    assert [each.value for each in own.observations("loss is 0.5\nloss=7")] == ["0.5"]


@pytest.mark.parametrize("text", ["2026-01-01", "2026-01-01 10:00:00Z", "2026-13-01T10:00:00Z", "2026-01-01T10:00:00", "now"])
def test_only_rfc_3339_is_a_time(text: str) -> None:
    assert moment(text) is None


def test_what_was_reported_is_read_by_time_and_equal_times_by_their_order() -> None:
    times = ["2026-01-01T12:00:00.1234569+02:00", "2026-01-01T10:00:00.123457Z", "2026-01-01T10:00:00.1Z", ZERO_TIME, ZERO_TIME]
    observations = Observations()
    observations.report("t", [Observation(time, "loss", value) for time, value in zip(times, "34201", strict=True)])
    observations.report("other", [Observation(ZERO_TIME, "loss", "9")])
    assert "".join(observation.value for observation in observations.read("t")) == "01234"
    observations.delete("t")
    assert (observations.read("t"), len(observations.read("other"))) == ([], 1)


def stopped_at(value: str, comparison: str, step: int, reports: Sequence[float]) -> int | None:
    """Return the number of the report (from 1) at which the trial has to stop."""
    rule = StopRule({"name": "loss", "value": value, "comparison": comparison, "startStep": step})
    return next((number for number, report in enumerate(reports, start=1) if rule.is_met(report)), None)


@pytest.mark.parametrize(
    ("reports", "number"),
    [
        pytest.param([5, 4, 3, 2.5], 3, id="worse at the start step"),
        pytest.param([5, 4, 1, 9, 9, 9], None, id="worse after the start step only"),
        pytest.param([1, 9, 9, 9], None, id="good before the start step"),
        pytest.param([9, 9, 2, 9], None, id="as good as the bound"),
    ],
)
def test_a_trial_is_stopped_at_the_one_report_that_is_tested(reports: list[float], number: int | None) -> None:
    assert stopped_at("2", "greater", 3, reports) == number
    assert stopped_at("-2", "less", 3, [-report for report in reports]) == number


def test_a_value_that_is_no_number_ends_the_collector_that_watches() -> None:
    assert TEXT.values("accuracy=nan", "loss") == []
    with pytest.raises(CollectorError, match="Unable to parse value"):
        TEXT.values("loss=nan", "loss")
    with pytest.raises(CollectorError, match="rule metric loss"):
        stopped_at("", "less", 1, [1])
