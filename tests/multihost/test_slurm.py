"""Workers in jobs of a real SLURM on two nodes, Optuna's over PostgreSQL on a third host: what each fault does to trials."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import pytest
import yaml

from multihost.commands import RESTORING, Command, Runs, hosts_of, taken_over, verified
from namespaced_hosts import REPOSITORY, Hosts
from slurm_hosts import Slurm, limits_memory, slurm
from tuneoff.record.events.reader import EventLog
from tuneoff.record.events.schema import Epoch, TrialEnded, TrialStarted
from tuneoff.record.run_record import RunRecord
from tuneoff_adapters.optuna.servers import _postgresql
from waiting import until

pytestmark = [pytest.mark.multihost, pytest.mark.timeout(300)]

PASSWORD = "of-the-tests"
DATA = "/tmp/postgresql"


@dataclass
class Database:
    """PostgreSQL on a host; its users show a password."""

    hosts: Hosts
    name: str

    @property
    def url(self) -> str:
        return f"postgresql+psycopg://postgres:$PGPASSWORD@{self.hosts.address(self.name)}:5432/postgres"

    def make(self) -> None:
        address = self.hosts.address(self.name)
        self.hosts.run(
            self.name,
            f"mkdir {DATA} && echo {PASSWORD} >{DATA}.password && chown -R postgres {DATA} {DATA}.password && cd / && "
            f"{self.as_user('initdb')} -D {DATA} -U postgres -A scram-sha-256 --pwfile={DATA}.password "
            f"-E UTF8 --no-locale --no-sync >/dev/null && "
            f"echo 'host all all {address}/24 scram-sha-256' >>{DATA}/pg_hba.conf && "
            f"echo \"listen_addresses='{address}' unix_socket_directories=''\" | tr ' ' '\\n' >>{DATA}/postgresql.conf",
        )
        self.start()

    def start(self) -> None:
        self.hosts.run(self.name, f"cd /; {self.as_user('pg_ctl')} -D {DATA} -w -l {DATA}/log start >/dev/null")

    def stop(self) -> None:
        """Stop it at once, whoever is connected."""
        self.hosts.run(self.name, f"cd /; {self.as_user('pg_ctl')} -D {DATA} -w -m fast stop >/dev/null")

    def studies(self) -> str:
        """Return the names of the studies that it has."""
        asked = f"PGPASSWORD={PASSWORD} psql -h {self.hosts.address(self.name)} -U postgres -Atc 'SELECT study_name FROM studies'"
        return self.hosts.run(self.name, asked).stdout

    @staticmethod
    def as_user(program: str) -> str:
        return f"runuser -u postgres -- {_postgresql(program)}"


@pytest.fixture(scope="module")
def cluster() -> Iterator[Slurm]:
    with slurm(2) as made:
        yield made


@pytest.fixture(scope="module")
def database(cluster: Slurm) -> Database:
    if _postgresql("initdb") is None:
        pytest.skip("not installed: postgresql; run: .ci/install PostgreSQL postgresql")
    made = Database(cluster.hosts, cluster.controller)
    made.make()
    return made


def runs_of(cluster: Slurm, name: str, **options: Any) -> Runs:
    environment = {"SLURM_CONF": str(cluster.conf), "PGPASSWORD": PASSWORD, "XDG_CACHE_HOME": f"{cluster.hosts.shared}/cache"}
    return Runs(cluster.hosts, {"name": name, "platform": "slurm", "options": {"lost_seconds": 10, **options}}, environment)


@pytest.fixture
def optuna(cluster: Slurm, database: Database) -> Runs:
    return runs_of(cluster, "optuna", storage=database.url)


@pytest.fixture
def serial(cluster: Slurm) -> Runs:
    return runs_of(cluster, "serial")


def nothing_left(cluster: Slurm) -> None:
    """Hold that no job is left, and soon no process of the run's on any host, which is up: what un-deployed it ends last."""
    assert cluster.call("squeue -h") == ""
    for name in cluster.hosts.names:
        until(partial(_is_without_a_process, cluster, name), 10)


def _is_without_a_process(cluster: Slurm, name: str) -> bool:
    return cluster.hosts.run(name, "pgrep -f '[t]uneoff'; true").stdout == ""


def causes(record: RunRecord) -> str:
    return " ".join(attempt.cause or "" for trial in record.trials for attempt in trial.attempts)


def test_optuna_runs_its_budget_over_two_nodes_and_a_database_and_leaves_nothing(
    cluster: Slurm, database: Database, optuna: Runs
) -> None:
    command = optuna(budget={"trials": 40, "epochs_per_trial": 2}, workload={"name": "surrogate"}, sampler="tpe")
    said = command.end()
    record = command.record
    assert record.status == "done", said
    assert [trial.state for trial in record.trials] == ["completed"] * 40
    assert set(hosts_of(record).values()) == set(cluster.nodes)
    assert 0 < record.clock_uncertainty_ns < 500_000_000
    assert database.studies() == ""
    nothing_left(cluster)
    verified(optuna, command)


@pytest.mark.parametrize("framework", ["serial", "optuna"])
def test_given_configurations_have_the_same_values_as_here(cluster: Slurm, framework: str) -> None:
    fields: dict[str, Any] = {
        "workload": {"name": "mnist_mlp", "options": {"dataset": "digits"}},
        "sampler": "fixed",
        "configurations": {"sample": 4, "seed": 0},
        "search_space": yaml.safe_load((REPOSITORY / "benchmarks/digits.yaml").read_text())["search_space"],
        "objective": {"metric": "validation_accuracy"},
        "budget": {"trials": 4, "epochs_per_trial": 3},
        "workers": {"count": 2, "memory_mb": 1500},
    }
    there = runs_of(cluster, framework)
    command = there(None, **fields)
    said = command.end()
    assert command.record.status == "done", said
    assert set(hosts_of(command.record).values()) == set(cluster.nodes)  # SLURM has memory for one worker on each
    here = Runs(cluster.hosts, {"name": "serial", "platform": "local", "options": {}}, {})
    beside = here(**fields)
    beside.end()
    assert values(command) == values(beside)
    assert len(values(command)) == 12
    verified(there, command)


def values(command: Command) -> list[str]:
    """Return each metric of each epoch of each configuration, in an order of their own."""
    configurations = {trial.trial: trial.configuration for trial in command.record.trials}
    epochs = command.events(Epoch)
    return sorted(repr((configurations[event.trial], event.epoch, event.metrics)) for event in epochs)


def test_trials_of_a_node_without_power_are_tried_again_on_the_other(cluster: Slurm, database: Database, optuna: Runs) -> None:
    command = optuna(workers={"count": 2}, failures={"retries": 1}, budget={"trials": 6, "epochs_per_trial": 6})
    command.wait_for(lambda: len({event.trial for event in command.events(Epoch)}) == 2)
    node = nodes_at_work(command)[-1]
    cluster.hosts.power_off(node)
    said = command.end(200)
    cluster.hosts.power_on(node)
    cluster.start_node(node)
    record = command.record
    assert record.status == "done", said
    assert [trial.state for trial in record.trials] == ["completed"] * 6
    assert next(attempt.charged for trial in record.trials for attempt in trial.attempts[:-1]) == "infrastructure"
    assert "has not answered for" in " ".join(flag.text for flag in record.flags if flag.name == "host_lost")
    assert database.studies() == ""
    cluster.wait_idle()
    nothing_left(cluster)
    verified(optuna, command)


def nodes_at_work(command: Command) -> list[str]:
    """Return the nodes whose workers have begun trials, in order."""
    (folder,) = command.results.glob("runs/*/*/events")
    return sorted({process.host for process, event in EventLog(folder) if isinstance(event, TrialStarted)})


def test_a_restart_of_the_database_ends_the_run_as_what_it_is_and_a_resume_repeats_it(
    cluster: Slurm, database: Database, optuna: Runs
) -> None:
    file, results = optuna.written(workers={"count": 2}, budget={"trials": 8, "epochs_per_trial": 3})
    words = f"run {file} --adapter optuna@slurm --output {results}"
    command = optuna.command(words, optuna.environment, results)
    command.wait_for(lambda: len(command.events(TrialEnded)) >= 2)
    database.stop()
    database.start()
    said = command.end()
    record = command.record
    assert (record.status, record.charged) == ("failed", "infrastructure"), said
    assert "the server of option `storage` must answer until the run's end" in (record.reason or "")
    assert {trial.charged for trial in record.trials if trial.state == "failed"} <= {"infrastructure"}
    nothing_left(cluster)
    again = optuna.command(f"{words} --resume", optuna.environment, results)
    said = again.end()
    assert again.record.status == "done", said
    assert len({trial.trial for trial in again.record.trials}) == 8
    verified(optuna, again)


@pytest.mark.skipif(not limits_memory(), reason="SLURM limits memory by control groups of the first version, which are not here")
@pytest.mark.parametrize("framework", ["serial", "optuna"])
def test_a_trial_beyond_its_memory_is_reported_as_that_and_the_others_are_run(
    cluster: Slurm, database: Database, framework: str
) -> None:
    runs = runs_of(cluster, framework, **({"storage": database.url} if framework == "optuna" else {}))
    options = {"kinds": ["out_of_memory"], "rate": 0.3, "allocate_mb": 2000}
    fields: dict[str, Any] = {"workload": {"name": "faulty", "options": options}, "failures": {"retries": 1}}
    command = runs(None, workers={"count": 2, "memory_mb": 400}, budget={"trials": 8, "epochs_per_trial": 2}, **fields)
    said = command.end()
    record = command.record
    assert record.status == "done", said
    ends = {(trial.state, trial.charged, len(trial.attempts)) for trial in record.trials}
    assert ends == {("completed", None, 1), ("failed", "workload", 1)}
    assert "out of memory: more than 400 MB (SLURM)" in causes(record)
    nothing_left(cluster)
    verified(runs, command)


def test_a_job_that_is_preempted_comes_again_and_so_does_its_trial(cluster: Slurm, serial: Runs) -> None:
    budget = {"trials": 2, "epochs_per_trial": 20}
    command = serial(workload=RESTORING, workers={"count": 2}, failures={"retries": 1}, budget=budget)
    command.wait_for(lambda: len({event.trial for event in command.events(Epoch)}) == 2)
    node = nodes_at_work(command)[0]
    cluster.call(f"sbatch -p high -w {node} --exclusive -n1 -o /dev/null --wrap 'sleep 4'")
    all_completed_and_one_again(cluster, serial, command, 2)


def test_a_job_whose_time_is_over_comes_again(cluster: Slurm, database: Database) -> None:
    runs = runs_of(cluster, "optuna", storage=database.url, sbatch={"time": 1})
    budget = {"trials": 4, "epochs_per_trial": 15}
    command = runs(None, workload=RESTORING, workers={"count": 1}, failures={"retries": 1}, budget=budget)
    all_completed_and_one_again(cluster, runs, command, 4)


def all_completed_and_one_again(cluster: Slurm, runs: Runs, command: Command, trials: int) -> None:
    """Hold that a run got through though a job of it ended on the way, with no epoch trained twice, and that nothing is left."""
    said = command.end(240)
    record = command.record
    assert record.status == "done", said
    ends = [[(attempt.state, attempt.cause, len(attempt.epochs)) for attempt in trial.attempts] for trial in record.trials]
    assert [trial.state for trial in record.trials] == ["completed"] * trials, ends
    assert sum(taken_over(trial) for trial in record.trials if len(trial.attempts) == 2) >= 1
    nothing_left(cluster)
    verified(runs, command)


def test_a_trial_beyond_its_time_is_ended_on_its_node(cluster: Slurm, serial: Runs) -> None:
    workload = {"name": "sleep", "options": {"epoch_seconds": 600}}
    command = serial(workload=workload, budget={"trials": 2, "epochs_per_trial": 1}, timeouts={"trial_seconds": 3})
    command.end()
    assert [(trial.state, trial.charged) for trial in command.record.trials] == [("timed_out", "workload")] * 2
    nothing_left(cluster)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_an_ended_command_leaves_no_job(cluster: Slurm, database: Database, optuna: Runs, number: signal.Signals) -> None:
    command = optuna(budget={"trials": 4, "epochs_per_trial": 100})
    command.wait_for(lambda: len({event.trial for event in command.events(Epoch)}) == 4)
    (pid,) = cluster.hosts.run("h1", "pgrep -f '[t]uneoff run' | head -1").stdout.split()
    cluster.hosts.run("h1", f"kill -{number.value} {pid}")
    command.end()
    until(lambda: cluster.call("squeue -h") == "", 40)
    until(lambda: not list(command.results.glob("runs/*/*/outside.txt")), 30)
    assert database.studies() == ""
    nothing_left(cluster)


def test_what_slurm_does_not_take_is_said_in_one_line(cluster: Slurm) -> None:
    for sbatch, said in (
        ({"partition": "nowhere"}, "invalid partition"),
        ({"nodelist": "h2", "licenses": "none-here"}, "license"),
    ):
        command = runs_of(cluster, "serial", sbatch=sbatch)(None)
        command.end()
        reason = command.record.reason or ""
        assert reason.startswith("step deploy failed: "), reason
        assert said in reason.lower()
        assert "\n" not in reason
    nothing_left(cluster)


def test_a_queue_that_is_too_long_is_named_with_slurms_reason(cluster: Slurm) -> None:
    command = runs_of(cluster, "serial", sbatch={"partition": "low", "begin": "now+1hour"})(None, timeouts={"deploy_seconds": 12})
    command.end()
    assert "it is PENDING (BeginTime)" in (command.record.reason or "")
    nothing_left(cluster)


BETWEEN = """
import socket, sys, threading
port, target, offset = int(sys.argv[1]), sys.argv[2], int(sys.argv[3])

def pass_on(source, sink, changes):
    count = 0
    while data := bytearray(source.recv(65_536)):
        if changes and count <= offset < count + len(data):
            data[offset - count] ^= 1
        count += len(data)
        sink.sendall(data)
    sink.shutdown(socket.SHUT_WR)

listener = socket.create_server(("", port))
while True:
    job, _ = listener.accept()
    command = socket.create_connection((target, port))
    for ends in ((job, command, True), (command, job, False)):
        threading.Thread(target=pass_on, args=ends, daemon=True).start()
"""


def test_a_byte_that_is_changed_between_a_job_and_the_command_ends_the_run_as_the_infrastructures(cluster: Slurm) -> None:
    """A host that jobs take for the command's passes all on, and changes one byte of what each connection's job says."""
    hosts, offset = cluster.hosts, 3000  # after the greeting, in the answers of an agent
    script = hosts.shared / "between.py"
    script.write_text(BETWEEN)
    before = ports(hosts, "h1")
    runs = runs_of(cluster, "serial", submit_host="h3", sbatch={"begin": "now+5"})
    command = runs(None, workload=RESTORING, workers={"count": 2}, budget={"trials": 2, "epochs_per_trial": 60})
    command.wait_for(lambda: ports(hosts, "h1") - before, 60)
    (port,) = ports(hosts, "h1") - before
    words = f"exec {sys.executable} {script} {port} {hosts.address('h1')} {offset}"
    between = subprocess.Popen(hosts.command("h3", words), stdin=subprocess.DEVNULL)
    try:
        said = command.end()
    finally:
        between.kill()
        between.wait()
    record = command.record
    assert (record.status, record.charged) == ("failed", "infrastructure"), said
    assert re.search(
        r"what this command and host h[23] \(job \d+\) say to each other must arrive as it was sent, but message \d+ was changed "
        "on its way; use a network that no one else can change",
        record.reason or "",
    ), record.reason
    cluster.wait_idle()
    nothing_left(cluster)


def ports(hosts: Hosts, name: str) -> set[int]:
    """Return the ports on which a host listens at all its addresses."""
    lines = [line.split() for line in hosts.run(name, "cat /proc/net/tcp").stdout.splitlines()[1:]]
    return {int(fields[1].split(":")[1], 16) for fields in lines if fields[3] == "0A" and fields[1].startswith("00000000:")}
