"""`tuneoff` on the first of several hosts: it is started there, watched by the events of its results, and checked at its end."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from namespaced_hosts import REPOSITORY, Hosts
from tuneoff.measure.stored import read_runs
from tuneoff.record.events.reader import EventLog
from tuneoff.record.events.schema import Event, Flag, WorkerDied
from tuneoff.record.run_record import RunRecord, TrialRecord

SOURCES = ":".join(str(REPOSITORY / name) for name in ("core", "adapters", "workloads", "tests"))


RESTORING = {"name": "faulty", "options": {"rate": 0.0, "epoch_seconds": 1.0}}  # the surrogate, slower; each epoch improves


@dataclass
class Command:
    """`tuneoff run` on h1, and its results folder."""

    process: subprocess.Popen[str]
    results: Path

    def events(self, kind: type[Event]) -> list[Any]:
        folders = list(self.results.glob("runs/*/*/events"))
        return [event for folder in folders for _, event in EventLog(folder).merged() if isinstance(event, kind)]

    def wait_for(self, look: Callable[[], object], seconds: float = 150.0) -> None:
        """Wait for something to be seen in the results, as long as the command runs."""
        deadline = time.monotonic() + seconds
        while not look():
            assert self.process.poll() is None, self.process.communicate()[0]
            logs = [path.read_text() for path in self.results.glob("runs/*/*/log.txt")]
            assert time.monotonic() < deadline, (*logs, self.events(WorkerDied), self.events(Flag))
            time.sleep(0.2)

    def end(self, seconds: float = 120.0) -> str:
        """Wait for its end and return what it said."""
        return self.process.communicate(timeout=seconds)[0]

    @property
    def record(self) -> RunRecord:
        assert self.results.exists(), self.end()
        last = max(self.results.glob("runs/*/*/"), key=lambda folder: (folder / "log.txt").stat().st_mtime)  # of its executions
        return next(record for record in read_runs(self.results) if record.execution_id == last.name)


@dataclass
class Runs:
    """Starts commands on h1."""

    hosts: Hosts
    entry: dict[str, Any]  # of the adapter: its name, platform and options
    environment: dict[str, str]

    def __call__(
        self, options: dict[str, Any] | None = None, *, environment: dict[str, str] | None = None, **fields: Any
    ) -> Command:
        """Begin a run; `options` and `environment` in place of those that are given for all."""
        file, results = self.written(options, **fields)
        adapter = f"{self.entry['name']}@{self.entry['platform']}"
        given = self.environment if environment is None else environment
        return self.command(f"run {file} --adapter {adapter} --output {results}", given, results)

    def written(self, options: dict[str, Any] | None = None, **fields: Any) -> tuple[Path, Path]:
        """Write another experiment; return its file and a folder for its results."""
        number = len(list(self.hosts.shared.glob("*.yaml"))) + 1
        given = self.entry["options"] if options is None else options
        content = {
            "name": "several-hosts",
            "workload": {"name": "sleep", "options": {"epoch_seconds": 1.0}},
            "sampler": "random",
            "budget": {"trials": 4, "epochs_per_trial": 4},
            "workers": {"count": 4},
            "seeds": [0],
            "warm_up": False,
            "adapters": [{**self.entry, "options": given}],
            **fields,
        }
        file, results = self.hosts.shared / f"{number}.yaml", self.hosts.shared / f"results{number}"
        file.write_text(yaml.safe_dump(content))
        return file, results

    def command(self, words: str, environment: dict[str, str], results: Path) -> Command:
        settings = " ".join(f"{name}={value}" for name, value in {**environment, "PYTHONPATH": SOURCES}.items())
        script = f"cd {self.hosts.shared}; exec env {settings} {sys.executable} -m tuneoff {words} 2>&1"
        process = subprocess.Popen(
            self.hosts.command("h1", script), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, start_new_session=True
        )
        return Command(process, results)


def left(hosts: Hosts, name: str) -> list[str]:
    """Return what a host has beyond what it had at its start: processes, files in /tmp, HOME and /dev/shm, open ports."""
    own = "bash|sshd|sleep 3600|sh -c|ps -e|sed|grep|awk"
    # listed before grep starts: at its start it has no arguments yet, and is [grep]
    processes = f"seen=$(ps -e -o args=); echo \"$seen\" | grep -vE '^({own})'"
    files = "ls -A /tmp | grep -vx home; ls -A /tmp/home /dev/shm | grep -v : | grep ."
    ports = "ss -Hltn | awk '{print $4}' | grep -v ':22$'"
    return hosts.run(name, f"{processes}; {files}; {ports}", check=False).stdout.splitlines()


def hosts_of(record: RunRecord) -> dict[tuple[str, int], str]:
    """Return the host of each attempt."""
    return {
        (trial.trial, attempt.attempt): (attempt.process or "").partition(":")[0]
        for trial in record.trials
        for attempt in trial.attempts
    }


def taken_over(trial: TrialRecord) -> int:
    """Return how many epochs a retry took over: all that the first attempt recorded, so that none is trained twice."""
    first, second = trial.attempts
    restored = len(second.epochs) - second.epochs_trained
    assert len(first.epochs) <= restored <= len(first.epochs) + 1  # a checkpoint is there before its event is
    return restored


def verified(runs: Runs, command: Command) -> None:
    """Let `tuneoff verify` recompute the folder."""
    check = runs.command(f"verify {command.results}", {}, command.results)
    said = check.end()
    assert check.process.returncode == 0, said
