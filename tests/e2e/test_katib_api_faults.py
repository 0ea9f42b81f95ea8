"""Katib's API server goes away, answers errors, is slow or dies while a run goes on; trials that quit without a word."""

from __future__ import annotations

import itertools
import json
import os
import shutil
import signal
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from adapters.katib.faulty_proxy import FaultyProxy
from adapters.lifecycle_run import undeploy_afresh
from contract.runs import Made, experiment, make
from e2e.faulty_cluster import FOR_EVER, Fault, Faults, FaultyCluster, answering, faulty_cluster, hang, miscounted, sleeping
from e2e.quitting_workload import Quitting
from tuneoff.base.layout import OUTSIDE
from tuneoff.base.processes import command_line, with_mark
from tuneoff.base.space import SearchSpace, stepped
from tuneoff.experiment.spec import Budget, RunSpec, Strategy, WorkloadSpec
from tuneoff.record.events import schema
from tuneoff.run.machine import FLAGS, PASSING
from tuneoff.run.progress import LiveRun
from tuneoff.run.supervisor.execution import Execution, undeploy_outside
from tuneoff_adapters.katib.options import EMULATION
from tuneoff_adapters.katib.platforms import EMULATED_MARK

pytestmark = pytest.mark.slow(first=True)

TRIALS = 22  # of the run that meets all faults: enough to go on after the last one, also where looks at it are seconds apart
SLOW_SECONDS = 0.5  # per answer; with 5 the same run takes 78 s
API_SECONDS = 2.0  # how long the runs below wait for an API server that is away for good


@dataclass(frozen=True)
class Ended:
    """A run whose API server went away for good, and how many seconds after that it ended."""

    made: Made
    cluster: FaultyCluster
    results: Path
    seconds: float


def shared_slots(stays: Iterable[tuple[int, int, int]]) -> list[tuple[int, int]]:
    """Return (slot, start) of what started on a slot before another had left it, given (slot, start, end) of all."""
    pairs = itertools.pairwise(sorted(stays))
    return [(slot, start) for (before, _, end), (slot, start, _) in pairs if slot == before and start < end]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FaultyCluster]:
    with faulty_cluster(tmp_path_factory.mktemp("cluster")) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def rough(cluster: FaultyCluster, tmp_path_factory: pytest.TempPathFactory) -> tuple[Made, Faults]:
    plan = [
        Fault(1, FaultyProxy.refuse, 3.0),  # longer than the supervisor looks at files to which nobody writes any more
        Fault(2, answering(500), 1.0),
        Fault(3, answering(429), 1.0),
        Fault(4, hang, 0.5),
        Fault(5, FaultyProxy.cut, 0.0),
    ]
    faults = Faults(cluster.proxy, plan)
    return cluster.make(tmp_path_factory.mktemp("rough"), sleeping(trials=TRIALS), faults), faults


@pytest.fixture(scope="module")
def away(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ended]:
    folder = tmp_path_factory.mktemp("away")
    with faulty_cluster(folder) as cluster:
        faults = Faults(cluster.proxy, [Fault(2, FaultyProxy.refuse, FOR_EVER)])
        made = cluster.make(folder / "results", sleeping(trials=8), faults, api_seconds=API_SECONDS)
        yield Ended(made, cluster, folder / "results", time.monotonic() - faults.began[0])


# --- comes back ---


def test_a_run_outlives_a_server_that_is_away_answers_errors_hangs_and_cuts_connections(rough: tuple[Made, Faults]) -> None:
    made, faults = rough
    assert (faults.left, len(faults.began)) == ([], 5)
    assert (made.record.status, made.record.reason) == ("done", None)
    assert [trial.state for trial in made.record.trials] == ["completed"] * TRIALS
    of_machine = {*FLAGS, *PASSING, "emulated_platform"}
    assert [(flag.name, flag.text) for flag in made.record.flags if flag.name not in of_machine] == []


def test_no_event_is_lost_or_doubled_over_faults(rough: tuple[Made, Faults]) -> None:
    assert miscounted(rough[0]) == []


def test_slots_are_those_of_the_pods_times_though_their_logs_came_as_blocks(rough: tuple[Made, Faults]) -> None:
    record = rough[0].record
    attempts = [attempt for trial in record.trials for attempt in trial.attempts]
    stays = []
    for attempt in attempts:
        assert attempt.slot is not None
        assert attempt.submitted_ns is not None
        assert attempt.started_ns is not None
        assert attempt.ended_ns is not None
        assert attempt.submitted_ns <= attempt.started_ns
        stays.append((attempt.slot, attempt.started_ns, attempt.ended_ns))
    assert shared_slots(stays) == []
    assert {slot for slot, *_ in stays} == set(range(record.run_spec().experiment.workers.count))
    assert shared_slots([(0, 0, 10), (1, 5, 15), (0, 9, 20), (1, 15, 16)]) == [(0, 9)]  # control


def test_lost_and_doubled_events_are_noticed(rough: tuple[Made, Faults], tmp_path: Path) -> None:
    """Control of the count above: an epoch that is missing, an end that comes twice."""
    made, _ = rough
    (sound, *_) = sorted((made.folder / "events").glob("pod-*"))
    lines = sound.read_bytes().splitlines(keepends=True)
    without_an_epoch = next(index for index, line in enumerate(lines) if b'"epoch":2' in line)
    for number, faulty in enumerate((lines[:without_an_epoch] + lines[without_an_epoch + 1 :], [*lines, lines[-1]])):
        copy = tmp_path / str(number)
        shutil.copytree(made.folder / "events", copy / "events")
        (copy / "events" / sound.name).write_bytes(b"".join(faulty))
        assert len(miscounted(replace(made, folder=copy))) == 1


def test_nothing_is_left_after_faults(rough: tuple[Made, Faults], cluster: FaultyCluster) -> None:
    assert rough[0].left == ()
    assert cluster.namespaces() == []
    assert not (rough[0].folder / OUTSIDE).exists()


def test_undeploy_a_second_time_finds_nothing_and_says_nothing(
    rough: tuple[Made, Faults], cluster: FaultyCluster, tmp_path: Path
) -> None:
    before = len(cluster.proxy.seen)
    undeploy_afresh(rough[0].folder)
    assert len(cluster.proxy.seen) == before  # it knows that nothing is left
    (rough[0].folder / OUTSIDE).write_text("killed before it could take note of its own un-deploy")
    undeploy_afresh(rough[0].folder)
    assert len(cluster.proxy.seen) > before
    assert not (rough[0].folder / OUTSIDE).exists()


def test_a_slow_server_costs_time_and_nothing_else(cluster: FaultyCluster, tmp_path: Path) -> None:
    cluster.proxy.delay_seconds = SLOW_SECONDS
    try:
        made = cluster.make(tmp_path / "results", sleeping(trials=2, epochs=1))
    finally:
        cluster.proxy.restore()
    assert (made.record.status, made.record.reason) == ("done", None)
    assert miscounted(made) == []
    assert "started_before_submitted" not in {flag.name for flag in made.record.flags}
    assert (made.left, cluster.namespaces()) == ((), [])


# --- goes away and stays ---


def test_a_run_whose_server_stays_away_fails_in_one_line_well_before_its_timeout(away: Ended) -> None:
    record = away.made.record
    assert (record.status, record.charged) == ("failed", "infrastructure")
    reason = record.reason or ""
    assert "\n" not in reason
    assert f"the API server at {away.cluster.proxy.url} cannot be reached (connection refused" in reason
    assert reason.count("cannot be reached") == 1
    assert len(reason) < 600
    assert away.seconds < 25  # trials_seconds is 100


def test_it_keeps_its_finished_trials_and_blames_no_trial(away: Ended) -> None:
    states = [trial.state for trial in away.made.record.trials]
    assert states.count("completed") >= 2
    assert [trial for trial in away.made.record.trials if trial.charged == "workload"] == []
    assert away.made.left == ()  # on this machine


def test_it_names_what_may_be_left_in_the_cluster_and_how_to_remove_it(away: Ended) -> None:
    namespace = f"tuneoff-{away.made.record.execution_id}"
    assert f"namespace {namespace} may be left" in (away.made.record.reason or "")
    assert f"kubectl delete namespace {namespace}" in (away.made.record.reason or "")
    told = [flag.text for flag in away.made.events(schema.Flag) if flag.name == "left_behind"]
    (left,) = [text for text in told if namespace in text]  # the others: shared memory of somebody else's programs
    assert "the next tuneoff command on these results removes them" in left
    assert away.cluster.namespaces() == [namespace]


def test_what_is_left_is_removed_once_the_server_is_back(away: Ended) -> None:
    away.cluster.proxy.restore()
    record = away.made.record
    assert undeploy_outside(away.results, {record.run_id: record.run_spec()}, 20) == []
    assert away.cluster.namespaces() == []


# --- the emulated server dies ---


def test_a_run_whose_emulated_server_is_killed_fails_at_once_in_one_line_and_leaves_nothing(tmp_path: Path) -> None:
    killed_at: list[float] = []

    def kill_server(live: LiveRun, folder: Path) -> bool:
        if live.completed < 2 or not live.running:
            return False
        (execution,) = folder.iterdir()
        servers = [pid for pid in with_mark(EMULATED_MARK, execution.name) if EMULATION in command_line(pid)]
        os.kill(servers[0], signal.SIGKILL)
        killed_at.append(time.monotonic())
        return True

    made = make("katib", sleeping(trials=8), tmp_path, platform="emulated", act=kill_server)
    assert time.monotonic() - killed_at[0] < 10
    assert (made.record.status, made.record.charged) == ("failed", "infrastructure")
    assert "the emulated API server ended (killed by SIGKILL)" in (made.record.reason or "")
    assert "\n" not in (made.record.reason or "")
    assert [trial.state for trial in made.record.trials].count("completed") >= 2
    ended = [trial for trial in made.record.trials if trial.used_ticket and trial.state != "completed"]
    assert ended
    for trial in ended:
        assert "the emulated API server ended (killed by SIGKILL)" in (trial.cause or "")
        assert trial.charged == "infrastructure"
    assert made.left == ()


# --- an older experiment of the same name ---


def test_an_older_experiment_of_the_same_name_is_left_alone(
    cluster: FaultyCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def named(spec: RunSpec, runs_folder: Path) -> Execution:
        folder = runs_folder / spec.run_id / "older-abc123"
        (folder / "events").mkdir(parents=True)
        return Execution(spec=spec, execution_id="older-abc123", folder=folder)

    older = {"metadata": {"name": "tuneoff-older-abc123", "labels": {"made-by": "somebody-else"}}}
    cluster.server.ask("POST", "/api/v1/namespaces", older)
    monkeypatch.setattr("tuneoff.run.supervisor.run.new_execution", named)
    made = cluster.make(tmp_path / "results", sleeping(trials=2))
    assert made.record.status == "failed"
    assert "tuneoff-older-abc123" in (made.record.reason or "")
    assert "\n" not in (made.record.reason or "")
    found = cluster.server.ask("GET", "/api/v1/namespaces/tuneoff-older-abc123")
    assert found["metadata"]["labels"]["made-by"] == "somebody-else"
    assert "deletionTimestamp" not in found["metadata"]
    assert json.loads((made.folder / "run.json").read_text())["charged"] == "infrastructure"
    cluster.server.ask("DELETE", "/api/v1/namespaces/tuneoff-older-abc123")


# --- a trial that says nothing of its end, of which Katib has no metric ---


def test_a_trial_that_quits_with_exit_code_0_fails_alone_and_holds_nothing_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[1]))
    configurations = tuple({"quit": epoch} for epoch in range(3))
    spec = experiment(
        "null",
        search_space=SearchSpace({"quit": stepped(0, 2, 1, integer=True)}),
        sampler=Strategy(name="fixed"),
        configurations=configurations,
        budget=Budget(trials=3, epochs_per_trial=3),
    )
    target = f"{Quitting.__module__}:{Quitting.__qualname__}"
    made = make("katib", replace(spec, workload=WorkloadSpec(name="quitting", target=target)), tmp_path, platform="emulated")
    assert (made.record.status, made.left) == ("done", ())
    ends = {trial.configuration["quit"]: trial for trial in made.record.trials}
    assert [ends[epoch].state for epoch in range(3)] == ["completed", "failed", "failed"]
    for epoch in (1, 2):  # before its first report, and after it
        assert "its own code ended its process: exit code 0 (quitting_workload.py:" in (ends[epoch].cause or "")
        assert ends[epoch].charged == "workload"
