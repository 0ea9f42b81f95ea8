"""Ray Tune over two hosts: what is started, what each fault of a host or its cable does to trials, and that nothing is left."""

from __future__ import annotations

import hashlib
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from multihost.commands import RESTORING, SOURCES, Command, Runs, hosts_of, left, taken_over, verified
from namespaced_hosts import REPOSITORY, Hosts, hosts
from tuneoff.record.events.schema import Epoch, Flag, TrialStarted, WorkerDied
from waiting import until

pytestmark = [pytest.mark.multihost, pytest.mark.timeout(300)]

QUICK = {  # Ray's own settings: a node that does not answer is dead after 6 s, not after 64
    "RAY_health_check_initial_delay_ms": "1000",
    "RAY_health_check_period_ms": "1000",
    "RAY_health_check_timeout_ms": "1000",
    "RAY_health_check_failure_threshold": "5",
}
PATIENT = {**QUICK, "RAY_health_check_failure_threshold": "14"}  # after 15 s: what was lost is sent again 3 and 6 s after it was


@pytest.fixture(scope="module")
def two() -> Iterator[Hosts]:
    with hosts(2) as made:
        yield made


@pytest.fixture(scope="module")
def runs(two: Hosts) -> Runs:
    options = {"hosts": ["h1", "h2"], "host_command": two.template, "lost_seconds": 10}
    return Runs(two, {"name": "ray-tune", "platform": "cluster", "options": options}, QUICK)


def test_trials_run_on_both_hosts_clocks_are_aligned_and_nothing_is_left(two: Hosts, runs: Runs) -> None:
    command = runs()
    said = command.end()
    record = command.record
    assert record.status == "done", said
    assert [trial.state for trial in record.trials] == ["completed"] * 4
    assert sorted(hosts_of(record).values()) == ["h1", "h1", "h2", "h2"]
    assert 0 < record.clock_uncertainty_ns < 500_000_000
    assert [left(two, name) for name in two.names] == [[], []]
    verified(runs, command)


def test_trials_of_a_host_without_power_go_on_from_their_checkpoints_on_the_other(two: Hosts, runs: Runs) -> None:
    command = runs(workload=RESTORING, failures={"retries": 1}, budget={"trials": 6, "epochs_per_trial": 6})
    command.wait_for(lambda: len({event.trial for event in command.events(Epoch)}) == 4)
    two.power_off("h2")
    off_ns = time.monotonic_ns()
    command.wait_for(lambda: len(command.events(WorkerDied)) == 2, 60)
    noticed_seconds = (time.monotonic_ns() - off_ns) / 1e9
    said = command.end()
    two.power_on("h2")
    record = command.record
    assert noticed_seconds < 25
    assert record.status == "done", said
    assert [trial.state for trial in record.trials] == ["completed"] * 6
    again = [trial for trial in record.trials if len(trial.attempts) == 2]
    assert [trial.attempts[0].state for trial in again] == ["superseded"] * 2
    placed = hosts_of(record)
    assert [(placed[trial.trial, 1], placed[trial.trial, 2]) for trial in again] == [("h2", "h1")] * 2
    assert min(map(taken_over, again)) >= 1
    assert "host h2 has not answered for" in " ".join(flag.text for flag in record.flags if flag.name == "host_lost")
    assert left(two, "h1") == []
    verified(runs, command)


def test_a_cable_out_for_4_s_does_nothing_and_out_for_good_costs_the_trials_of_its_host_alone(two: Hosts, runs: Runs) -> None:
    command = runs(environment=PATIENT, budget={"trials": 4, "epochs_per_trial": 40})
    command.wait_for(lambda: len({event.trial for event in command.events(Epoch)}) == 4)
    two.pull("h2")
    time.sleep(4)  # what is tested
    two.plug("h2")
    plugged = len(command.events(Epoch))
    command.wait_for(lambda: len(command.events(Epoch)) > plugged + 12)
    assert not command.events(WorkerDied)
    assert not [flag for flag in command.events(Flag) if flag.name != "disturbed"]
    on_h2 = [event.trial for event in command.events(TrialStarted)]
    two.pull("h2")
    pulled_ns = time.monotonic_ns()
    command.wait_for(lambda: len(command.events(WorkerDied)) == 2)
    assert (time.monotonic_ns() - pulled_ns) / 1e9 < 30
    said = command.end()
    until(lambda: not left(two, "h2"), 30)  # it cannot be told: it ends by itself
    two.plug("h2")
    record = command.record
    assert record.status == "done", said
    placed = hosts_of(record)
    ends = {placed[trial.trial, 1]: (trial.state, trial.charged) for trial in record.trials}
    assert ends == {"h1": ("completed", None), "h2": ("failed", "infrastructure")}
    assert len(on_h2) == len(record.trials) == 4
    assert "host_lost" in {flag.name for flag in record.flags}
    until(lambda: not left(two, "h1"), 30)  # what was killed last may not be reaped yet
    verified(runs, command)


def test_a_trial_beyond_its_memory_is_ended_on_its_host_and_the_others_are_run(two: Hosts, runs: Runs) -> None:
    options = {"kinds": ["out_of_memory"], "rate": 0.3, "allocate_mb": 1500}
    workers, budget = {"count": 2, "memory_mb": 700}, {"trials": 8, "epochs_per_trial": 2}
    fields: dict[str, Any] = {"workload": {"name": "faulty", "options": options}, "failures": {"retries": 1}}
    command = runs({"hosts": ["h2"], "host_command": two.template}, workers=workers, budget=budget, **fields)
    said = command.end()
    record = command.record
    assert record.status == "done", said
    ends = {(trial.state, trial.charged, len(trial.attempts)) for trial in record.trials}
    assert ends == {("completed", None, 1), ("failed", "workload", 1)}
    assert {trial.cause for trial in record.trials} == {None, "out of memory: more than 700 MB (watchdog)"}
    assert set(hosts_of(record).values()) == {"h2"}
    assert [left(two, name) for name in two.names] == [[], []]
    verified(runs, command)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_an_ended_command_leaves_nothing_on_any_host(two: Hosts, runs: Runs, number: signal.Signals) -> None:
    command = runs(budget={"trials": 4, "epochs_per_trial": 100})
    command.wait_for(lambda: len({event.trial for event in command.events(Epoch)}) == 4)
    (pid,) = two.run("h1", "pgrep -f '[t]uneoff run' | head -1").stdout.split()
    two.run("h1", f"kill -{number.value} {pid}")
    command.end()
    until(lambda: [left(two, name) for name in two.names] == [[], []], 40)
    until(lambda: not list(command.results.glob("runs/*/*/outside.txt")), 20)  # un-deployed by the command or its guardian


def reason(command: Command) -> str:
    """Return why a run failed in its deploy step."""
    said = command.end()
    assert command.record.status == "failed", said
    text = command.record.reason or ""
    assert text.startswith("step deploy failed: "), text
    assert "\n" not in text
    return text.removeprefix("step deploy failed: ")


def test_what_cannot_work_is_said_in_one_line_before_anything_is_started(two: Hosts, runs: Runs) -> None:
    given = {"hosts": ["h1", "h2"], "host_command": two.template}
    assert reason(runs({**given, "hosts": ["h1", "h7"]})).startswith(
        "host h7 cannot be reached: ssh: Could not resolve hostname h7"
    )
    assert "nowhere/python" in reason(runs({**given, "host_python": "/nowhere/python"}))
    two.run("h2", f"mkdir /tmp/old && cd {REPOSITORY} && cp -r core adapters workloads /tmp/old")
    two.run("h2", "echo '# other' >>/tmp/old/core/tuneoff/errors.py")
    path = ":".join(f"/tmp/old/{name}" for name in ("core", "adapters", "workloads"))
    two.run("h2", f"printf '#!/bin/sh\\nPYTHONPATH={path} exec {sys.executable} \"$@\"' >/tmp/old/p; chmod +x /tmp/old/p")
    assert "tuneoff's code must be the same on all hosts, but host h2 has" in reason(runs({**given, "host_python": "/tmp/old/p"}))
    two.run("h2", f"mount -t tmpfs tmpfs {two.shared}")
    try:
        assert "the results folder must be shared by all hosts, but host h2" in reason(runs(given))
    finally:
        two.run("h2", f"umount {two.shared}; rm -r /tmp/old")
    assert [left(two, name) for name in two.names] == [[], []]


STRANGER = "setpriv --reuid=65534 --regid=65534 --clear-groups"


def test_another_user_of_a_host_neither_gets_rays_files_nor_has_a_process_of_mine_ended(two: Hosts, runs: Runs) -> None:
    two.run("h2", "mkdir /tmp/mine; sleep 600 3>/tmp/mine/file </dev/null >/dev/null 2>&1 & echo $! >/tmp/mine/pid")
    command = runs()
    name = "$(basename $folder | tr -d '\\n' | sha256sum | cut -c1-8)"  # what once followed from the execution
    linked = f"{STRANGER} ln -s /tmp/mine /tmp/tuneoff-{name} 2>/dev/null"
    attack = two.command("h2", f"while :; do for folder in {command.results}/runs/*/*; do {linked}; done; sleep 0.05; done")
    attacker = subprocess.Popen(attack, stdin=subprocess.DEVNULL)
    try:
        said = command.end()
        assert command.record.status == "done", said
        assert two.run("h2", "ls -A /tmp/mine; find /tmp -type l").stdout.split()[:2] == ["file", "pid"]
        digest = hashlib.sha256(command.record.execution_id.encode()).hexdigest()[:8]
        assert f"/tmp/tuneoff-{digest}\n" in two.run("h2", "find /tmp -type l -user 65534").stdout  # the attack took place
        assert two.run("h2", "find /tmp -maxdepth 1 -type d -name 'tuneoff-*'").stdout == ""
        two.run("h2", "kill -0 $(cat /tmp/mine/pid)")
    finally:
        attacker.kill()
        attacker.wait()
        two.run("h2", "pkill -f 'tuneoff-[$]'; kill $(cat /tmp/mine/pid); rm -r /tmp/mine /tmp/tuneoff-*", check=False)
    assert left(two, "h1") == []


def ray(two: Hosts, name: str, words: str, token: Path) -> None:
    settings = f"RAY_AUTH_MODE=token RAY_AUTH_TOKEN_PATH={token} RAY_USAGE_STATS_ENABLED=0 PYTHONPATH={SOURCES}"
    two.run(name, f"{settings} {sys.executable} -m ray.scripts.scripts {words}", seconds=120)


def test_a_given_cluster_needs_its_token_and_takes_a_node_that_joins_late(two: Hosts, runs: Runs) -> None:
    token, wrong = two.shared / "token", two.shared / "wrong"
    token.write_text("a" * 64)
    wrong.write_text("b" * 64)
    address = f"{two.address('h1')}:6379"
    start = "start --num-cpus=2 --include-dashboard=false --node-ip-address="
    ray(two, "h1", f"{start}{two.address('h1')} --head --port=6379", token)
    assert f"cluster at {address} needs a token, but none is given" in reason(runs({"address": address}, environment={}))
    path = "RAY_AUTH_TOKEN_PATH"
    assert "does not take this token; set RAY_AUTH" in reason(runs({"address": address}, environment={path: str(wrong)}))
    command = runs({"address": address}, environment={path: str(token)}, budget={"trials": 4, "epochs_per_trial": 75})
    command.wait_for(lambda: len(command.events(TrialStarted)) == 2)
    ray(two, "h2", f"{start.replace(' --include-dashboard=false', '')}{two.address('h2')} --address={address}", token)
    said = command.end(200)
    record = command.record
    assert record.status == "done", said
    assert [trial.state for trial in record.trials] == ["completed"] * 4
    assert sorted(hosts_of(record).values()) == ["h1", "h1", "h2", "h2"]  # two waited until it was there
    assert not {flag.name for flag in record.flags} & {"host_unchecked", "host_lost"}
    marked = f"grep -l TUNEOFF_RUN_ID={record.execution_id} /proc/[0-9]*/environ 2>/dev/null; true"
    assert [two.run(name, marked).stdout for name in two.names] == ["", ""]
    assert "raylet" in " ".join(left(two, "h1"))  # the cluster is its owner's
    verified(runs, command)
    for name in two.names:
        two.power_off(name)
        two.power_on(name)
