"""A cluster with Katib as its user gives it to the tests, looked at by the plain Kubernetes client, never by the adapter."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tuneoff.measure.stored import read_runs
from tuneoff.record.run_record import RunRecord

KUBECONFIG = os.environ.get("TUNEOFF_TEST_KUBECONFIG", "")
IMAGE = os.environ.get("TUNEOFF_TEST_IMAGE", "")
NO_CLUSTER = "no cluster is given: TUNEOFF_TEST_KUBECONFIG and TUNEOFF_TEST_IMAGE must name one with Katib and the trials' image"
LABEL = "tuneoff.io/execution"
PLURALS = ("experiments", "suggestions", "trials")
START_SECONDS = 600.0  # until a first trial has ended: images are pulled, a suggestion service gets ready
WAIT_SECONDS = 60.0
GIVEN = [  # marks of tests on it
    pytest.mark.slow,
    pytest.mark.cluster,
    pytest.mark.skipif(not (KUBECONFIG and IMAGE), reason=NO_CLUSTER),
    pytest.mark.timeout(1800),
]


def curves(record: RunRecord) -> dict[str, list[dict[str, float | None]]]:
    """Return what was measured after each epoch of each configuration."""
    return {trial.digest: [epoch.metrics for epoch in trial.attempts[-1].epochs] for trial in record.trials}


def entry(**options: Any) -> dict[str, Any]:
    """Return the line of the experiment file for Katib on the given cluster."""
    return {"name": "katib", "platform": "kubernetes", "options": {"kubeconfig": KUBECONFIG, "image": IMAGE, **options}}


@dataclass(frozen=True)
class Answer:
    """What a command gave back, and how long it took in seconds."""

    code: int
    out: str
    err: str
    seconds: float


class Compare:
    """`tuneoff compare` of an experiment in a folder, as a user would call it."""

    def __init__(self, folder: Path, **content: Any) -> None:
        self.results = folder / "results"
        file = folder / "experiment.yaml"
        file.write_text(json.dumps({"warm_up": False, "timeouts": {"setup_seconds": START_SECONDS}, **content}))
        options = ["--no-report", "--json", "--output", str(self.results)]  # an answer in words takes a second more
        self._command = [sys.executable, "-m", "tuneoff", "compare", str(file), *options]

    def run(self) -> Answer:
        """Run it to its end."""
        return self.interrupt(lambda: False)

    def interrupt(self, is_time: Callable[[], bool]) -> Answer:
        """Run it, and send SIGINT once `is_time` says so. The seconds are those from then on."""
        process = subprocess.Popen(self._command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        started = time.monotonic()
        is_sent = False
        try:
            while True:
                try:
                    out, err = process.communicate(timeout=0.2)
                    return Answer(process.returncode, out, err, time.monotonic() - started)
                except subprocess.TimeoutExpired:
                    assert time.monotonic() - started < 3 * START_SECONDS, "the command does not end"
                if not is_sent and is_time():
                    process.send_signal(signal.SIGINT)
                    started, is_sent = time.monotonic(), True
        finally:
            if process.poll() is None:
                process.kill()
                process.communicate()

    def records(self) -> dict[str, RunRecord]:
        """Return the records by adapter."""
        return {record.run_spec().adapter: record for record in read_runs(self.results)}

    def katib(self) -> RunRecord:
        return self.records()["katib"]

    def has_completed_trial(self) -> bool:
        """Tell whether an event file says so, while the command works."""
        lines = (line for path in self.results.glob("runs/*/*/events/*") for line in path.read_text().splitlines())
        return any('"trial_ended"' in line and '"completed"' in line for line in lines)


class Cluster:
    """The given cluster, by a client of its own."""

    def __init__(self) -> None:
        from kubernetes import client, config

        api = config.new_client_from_config(config_file=KUBECONFIG)
        self.core, self.custom = client.CoreV1Api(api), client.CustomObjectsApi(api)

    def left_of(self, execution_id: str) -> list[str]:
        """Return what carries the label of an execution, anywhere in the cluster."""
        selector = f"{LABEL}={execution_id}"
        found = [f"namespace {item.metadata.name}" for item in self.core.list_namespace(label_selector=selector).items]
        for plural in PLURALS:
            listed = self.custom.list_cluster_custom_object("kubeflow.org", "v1beta1", plural, label_selector=selector)
            found += [f"{plural} {item['metadata']['name']}" for item in listed["items"]]
        pods = self.core.list_pod_for_all_namespaces(label_selector=selector)
        return found + [f"pod {item.metadata.name}" for item in pods.items]

    def wait_until_gone(self, execution_id: str) -> list[str]:
        """Return what is left after a while: an interrupted command does not wait for a namespace to end."""
        deadline = time.monotonic() + WAIT_SECONDS
        while (left := self.left_of(execution_id)) and time.monotonic() < deadline:
            time.sleep(0.5)
        return left

    def namespaces(self) -> set[str]:
        return {item.metadata.name for item in self.core.list_namespace().items}

    def make_namespace(self, name: str, labels: dict[str, str]) -> None:
        self.core.create_namespace({"metadata": {"name": name, "labels": labels}})

    def make_config_map(self, name: str, namespace: str) -> None:
        self.core.create_namespaced_config_map(namespace, {"metadata": {"name": name}})

    def content_of(self, namespace: str) -> set[tuple[str, str]]:
        """Return name and uid of the config maps and pods in a namespace."""
        found = [*self.core.list_namespaced_config_map(namespace).items, *self.core.list_namespaced_pod(namespace).items]
        return {(item.metadata.name, item.metadata.uid) for item in found}

    def delete_namespace(self, name: str) -> None:
        self.core.delete_namespace(name)
