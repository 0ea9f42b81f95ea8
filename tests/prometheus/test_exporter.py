"""Live metrics: what a listener was told is what a scrape gets, in Prometheus' conventions, until the matrix ends."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from dataclasses import replace
from pathlib import Path
from typing import Any

import prometheus_client
import pytest
from prometheus_client.parser import text_string_to_metric_families

from command_line import LEAST, register_fakes, write_file
from tuneoff.cli.selection import overridden_plan
from tuneoff.errors import ExperimentError, MissingPackageError
from tuneoff.experiment.plan import Plan
from tuneoff.run.progress import Listener, LiveRun
from tuneoff.tell.live.server import MOST_REQUESTS, Server
from tuneoff.tell.prometheus import exporter
from tuneoff.tell.prometheus.exporter import LiveMetrics, exported, tree_use
from tuneoff.trust.check.footprint import all_listeners
from waiting import until

ADDRESS = "127.0.0.1"


class Recorder(Listener):
    """Remembers what it was told."""

    def __init__(self) -> None:
        self.told: list[str] = []

    def run_started(self, position: int, total: int, label: str, run_id: str) -> None:
        self.told.append("started")

    def run_progress(self, live: LiveRun) -> None:
        self.told.append("progress")

    def run_ended(self, position: int, total: int, label: str, status: str, reason: str | None, seconds: float) -> None:
        self.told.append(status)


@pytest.fixture
def plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Plan:
    register_fakes(monkeypatch)
    file = write_file(tmp_path / "experiment.yaml", {**LEAST, "seeds": [0, 7]})
    return overridden_plan(file)


def live(plan: Plan, **values: Any) -> LiveRun:
    shown = {"step": "trial", "seconds": 12.5, "trials": 5, "epochs_per_trial": 9, **values}
    return LiveRun(run_id=plan.runs[0].run_id, **shown)


def scrape(url: str) -> dict[str, dict[tuple[str, ...], float]]:
    """Return the values of a page by name and label values; `tuneoff_run_info` by all of its labels."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(url, timeout=10) as answer:
        text = answer.read().decode()
    found: dict[str, dict[tuple[str, ...], float]] = {}
    for family in text_string_to_metric_families(text):
        assert family.documentation
        for sample in family.samples:
            found.setdefault(sample.name, {})[tuple(sample.labels.values())] = sample.value
    return found


def started(metrics: LiveMetrics, plan: Plan, position: int = 1) -> None:
    metrics.run_started(position, len(plan.runs), "plain random", plan.runs[position - 1].run_id)


def test_a_scrape_gets_what_the_matrix_told_last(plan: Plan) -> None:
    shown = Recorder()
    with exported(plan, shown, 0, ADDRESS) as (metrics, url):
        before = scrape(url)
        assert before["tuneoff_runs_planned"] == {(): 2}
        assert "tuneoff_run_info" not in before
        started(metrics, plan)
        metrics.run_progress(live(plan, submitted=4, running=2, completed=1, pruned=1, epochs=14, incumbent=0.75))
        found = scrape(url)
        metrics.run_ended(1, 2, "plain random", "done", None, 3.0)
        after = scrape(url)
    counts = {("running",): 2, ("completed",): 1, ("pruned",): 1, ("failed",): 0, ("cancelled",): 0}
    assert found["tuneoff_run_trials"] == counts
    assert found["tuneoff_run_trials_planned"] == {(): 5}
    assert found["tuneoff_run_trials_submitted"] == {(): 4}
    assert found["tuneoff_run_epochs"] == found["tuneoff_epochs_total"] == {(): 14}
    assert found["tuneoff_run_duration_seconds"] == {(): 12.5}
    assert list(found["tuneoff_run_step_duration_seconds"]) == [("trial",)]
    assert found["tuneoff_run_incumbent"] == {("accuracy",): 0.75}
    assert found["tuneoff_runs_running"] == {(): 1}
    assert found["tuneoff_tree_processes"][()] >= 1
    assert found["tuneoff_tree_resident_memory_bytes"][()] > 1e6
    (labels,) = found["tuneoff_run_info"]
    assert {"plain", "random", "none", "0", "local", "false", "1", plan.runs[0].run_id} == set(labels)
    assert after["tuneoff_runs_ended_total"][("done",)] == 1
    assert after["tuneoff_runs_running"] == {(): 0}
    assert after["tuneoff_run_trials"] == counts  # the last run's stay
    assert "tuneoff_run_step_duration_seconds" not in after
    assert shown.told == ["started", "progress", "done"]


def test_counters_go_on_over_runs_and_gauges_start_anew(plan: Plan) -> None:
    metrics = LiveMetrics(plan, Listener())
    started(metrics, plan)
    metrics.run_progress(live(plan, epochs=14, completed=3))
    metrics.run_ended(1, 2, "plain random", "failed", "planted", 3.0)
    started(metrics, plan, 2)
    values = {sample.name: sample.value for metric in metrics.collect() for sample in metric.samples}
    assert values["tuneoff_epochs_total"] == 14
    assert "tuneoff_run_trials" not in values
    metrics.run_progress(live(plan, epochs=2))
    values = {sample.name: sample.value for metric in metrics.collect() for sample in metric.samples}
    assert (values["tuneoff_epochs_total"], values["tuneoff_run_epochs"]) == (16, 2)


def test_the_time_in_a_step_starts_with_the_step(plan: Plan) -> None:
    now = 100.0
    metrics = LiveMetrics(plan, Listener(), clock=lambda: now)
    started(metrics, plan)
    metrics.run_progress(live(plan, step="deploy"))
    now = 103.0
    metrics.run_progress(live(plan, step="trial"))
    now = 110.0
    metrics.run_progress(live(plan, step="trial"))
    samples = [sample for metric in metrics.collect() for sample in metric.samples if "step_duration" in sample.name]
    assert [(sample.labels, sample.value) for sample in samples] == [({"step": "trial"}, 7.0)]


def test_an_emulated_run_carries_its_mark(plan: Plan) -> None:
    spec = replace(plan.runs[0].spec, platform="emulated")
    marked = replace(plan, runs=(replace(plan.runs[0], spec=spec, emulated=True),))
    metrics = LiveMetrics(marked, Listener())
    started(metrics, marked)
    (labels,) = [sample.labels for metric in metrics.collect() for sample in metric.samples if sample.name == "tuneoff_run_info"]
    assert (labels["label"], labels["emulated"]) == ("plain@emulated", "true")


def test_names_and_types_follow_prometheus_conventions(plan: Plan) -> None:
    metrics = LiveMetrics(plan, Listener())
    started(metrics, plan)
    metrics.run_progress(live(plan, incumbent=0.5))
    for metric in metrics.collect():
        assert metric.name.startswith("tuneoff_")
        assert metric.documentation[0].isupper()
        assert not metric.documentation.endswith(".")
        assert not any(unit in metric.name for unit in ("_ms", "_mb", "_minutes", "_percent"))
        for sample in metric.samples:
            assert sample.name.endswith("_total") == (metric.type == "counter")


def test_the_port_and_the_thread_are_gone_with_the_command(plan: Plan) -> None:
    threads = set(threading.enumerate())  # also those of tests before, which may end meanwhile
    with exported(plan, Listener(), 0, ADDRESS) as (_, url):
        port = int(url.rpartition(":")[2].partition("/")[0])
        (listener,) = [one for one in all_listeners() if one.port == port]
        assert listener.is_loopback
        assert set(threading.enumerate()) - threads
    assert port not in {one.port for one in all_listeners()}
    assert set(threading.enumerate()) <= threads


def test_the_port_is_gone_after_an_interrupt_too(plan: Plan) -> None:
    with pytest.raises(KeyboardInterrupt), exported(plan, Listener(), 0, ADDRESS) as (_, url):
        raise KeyboardInterrupt
    assert int(url.rpartition(":")[2].partition("/")[0]) not in {one.port for one in all_listeners()}


def test_a_client_that_says_nothing_holds_up_neither_scrapes_nor_the_end(plan: Plan) -> None:
    with contextlib.ExitStack() as clients:
        with exported(plan, Listener(), 0, ADDRESS) as (_, url):
            port = int(url.rpartition(":")[2].partition("/")[0])
            for said in (b"", b"GET /metr"):
                clients.enter_context(socket.create_connection((ADDRESS, port))).sendall(said)
            assert scrape(url)["tuneoff_runs_planned"] == {(): 2}
            started = time.monotonic()
        assert time.monotonic() - started < 5
        assert port not in {one.port for one in all_listeners()}


@pytest.mark.slow
def test_strangers_hold_few_threads_of_the_command(plan: Plan) -> None:
    before = threading.active_count()
    with exported(plan, Listener(), 0, ADDRESS) as (_, url), contextlib.ExitStack() as strangers:
        port = int(url.rpartition(":")[2].partition("/")[0])
        for _ in range(3 * MOST_REQUESTS):
            strangers.enter_context(socket.create_connection((ADDRESS, port), timeout=10)).sendall(b"GET /metr")
        assert scrape(url)["tuneoff_runs_planned"] == {(): 2}
        until(lambda: threading.active_count() <= before + 1 + MOST_REQUESTS)


def test_a_page_of_another_name_cannot_read_them(plan: Plan) -> None:
    with exported(plan, Listener(), 0, ADDRESS) as (_, url):
        request = urllib.request.Request(url, headers={"Host": "evil.example"})
        with pytest.raises(urllib.error.HTTPError, match="403"):
            urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=10)


def test_another_host_needs_no_token(plan: Plan) -> None:
    with exported(plan, Listener(), 0, "0.0.0.0") as (_, url):
        assert scrape(url)["tuneoff_runs_planned"] == {(): 2}


@pytest.mark.skipif(shutil.which("promtool") is None, reason="not installed: promtool (of Debian's package prometheus)")
def test_the_page_passes_the_linter_of_prometheus(plan: Plan) -> None:
    metrics = LiveMetrics(plan, Listener())
    started(metrics, plan)
    metrics.run_progress(live(plan, incumbent=0.5))
    registry = prometheus_client.CollectorRegistry(auto_describe=False)
    registry.register(metrics)
    page = prometheus_client.generate_latest(registry)

    def lint(text: bytes) -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True, check=False)

    assert (lint(page).returncode, lint(page).stderr) == (0, b"")
    assert lint(page.replace(b"tuneoff_epochs_total", b"tuneoff_epochs")).returncode  # negative control: a counter needs it


def test_a_port_in_use_is_one_line(plan: Plan) -> None:
    with socket.create_server((ADDRESS, 0)) as taken:
        port = taken.getsockname()[1]
        said = f"`--metrics-port` must be free on 127.0.0.1, but {port} is in use; take another one, or 0 for any"
        with pytest.raises(ExperimentError) as caught, exported(plan, Listener(), port, ADDRESS):
            pytest.fail("it was served")
    assert str(caught.value) == said


def test_an_address_of_another_host_is_one_line(plan: Plan) -> None:
    with pytest.raises(ExperimentError, match=r"`--metrics-address` must be an address of this host, but got '192\.0\.2\.1'"):
        exported(plan, Listener(), 0, "192.0.2.1").__enter__()
    with pytest.raises(ExperimentError, match="must be an address of this host, but got 'no such host'"):
        exported(plan, Listener(), 0, "no such host").__enter__()


def test_a_forbidden_port_is_one_line(plan: Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    def bind(*arguments: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(Server, "server_bind", bind)
    with pytest.raises(ExperimentError, match=r"must be allowed to this user, but 80 on 127\.0\.0\.1 is not; take one from 1024"):
        exported(plan, Listener(), 80, ADDRESS).__enter__()


def test_without_the_package_the_command_that_installs_it_is_named(plan: Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exporter, "module_exists", lambda name: False)
    with pytest.raises(MissingPackageError) as caught:
        exported(plan, Listener(), 0, ADDRESS).__enter__()
    assert str(caught.value) == ("`--metrics-port` needs the prometheus-client package; run: pip install prometheus-client")
    assert caught.value.exit_code == 3


def test_the_tree_counts_children_and_the_cpu_time_of_ended_ones() -> None:
    ended = subprocess.run([sys.executable, "-c", "while __import__('time').process_time() < 0.3: pass"], check=True)
    assert ended.returncode == 0
    before, cpu_seconds, _ = tree_use(os.getpid())
    assert cpu_seconds >= 0.25
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    try:
        assert tree_use(os.getpid())[0] == before + 1
    finally:
        child.communicate(b"\n")
    assert tree_use(os.getpid())[0] == before
