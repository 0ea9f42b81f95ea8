"""The server as a program: how it starts, what it writes, how it ends; and the unmodified KatibClient on it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from emulated.program import COMMAND, failure, program
from katib_emulation.__main__ import write_kubeconfig
from tuneoff.base.processes import is_alive
from waiting import until

pytestmark = pytest.mark.slow  # processes, or faults that have to last


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_serves_while_its_kubeconfig_is_there_and_ends_with_its_watches_and_pods(tmp_path: Path, number: int) -> None:
    container = {"name": "c", "image": "i:1", "command": ["sleep", "60"]}
    job = {"metadata": {"name": "j"}, "spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [container]}}}}
    with program(tmp_path / "f", "--access-log", str(tmp_path / "log")) as server:
        assert server.ask("GET", "/version")["gitVersion"].endswith("emulated")
        assert until(lambda: (tmp_path / "log").read_text()).split("\t")[1:4] == ["GET", "/version", "200"]
        assert [path.stat().st_mode & 0o077 for path in (server.kubeconfig, server.folder)] == [0, 0]  # it holds a secret
        server.ask("POST", "/apis/batch/v1/namespaces/default/jobs", job)
        sleeping = until(lambda: processes_below(server.folder))
        token = server.config["users"][0]["user"]["token"]
        request = urllib.request.Request(
            f"http://127.0.0.1:{server.port}/api/v1/namespaces?watch=true", headers={"Authorization": f"Bearer {token}"}
        )
        with urllib.request.urlopen(request, timeout=10) as watch:
            assert b"ADDED" in watch.readline()
            server.process.send_signal(number)
            assert server.wait() == (0, "")
        assert not server.kubeconfig.exists()
        until(lambda: not any(map(is_alive, sleeping)), 5)


def processes_below(folder: Path) -> list[int]:
    """Return the processes that work in a pod's folder."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                inside = (entry / "cwd").readlink().is_relative_to(folder)
            except OSError:  # it has ended, or is another user's
                continue
            if inside:
                found.append(int(entry.name))
    return found


def test_it_outlives_the_thread_that_started_it_but_not_the_process(tmp_path: Path) -> None:
    start = (
        "import subprocess, sys, threading, time\n"
        "made = []\n"
        "thread = threading.Thread(target=lambda: made.append(subprocess.Popen(sys.argv[1:], stdout=subprocess.PIPE)))\n"
        "thread.start(); thread.join(); print(made[0].pid, made[0].stdout.readline().decode(), flush=True); time.sleep(60)"
    )
    kubeconfig = tmp_path / "kubeconfig"
    command = [sys.executable, "-c", start, *COMMAND, str(tmp_path / "f"), "--kubeconfig", str(kubeconfig)]
    parent = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    pid, _, line = parent.stdout.readline().partition(" ")
    try:
        for part in ("serving an emulated cluster", f"kubeconfig {kubeconfig};", f"files in {tmp_path / 'f'};", f"kill {pid}"):
            assert part in line
        assert kubeconfig.exists()
        assert is_alive(int(pid))
    finally:
        parent.kill()
        parent.communicate()
    until(lambda: not is_alive(int(pid)), 3)


def test_it_ends_with_any_process_that_is_named_and_one_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    with subprocess.Popen(["sleep", "60"]) as other, program(tmp_path / "f", "--parent", str(other.pid)) as server:
        other.kill()
        assert server.wait() == (0, "")
    line = failure(tmp_path / "f", tmp_path / "kubeconfig", "--parent", str(other.pid))
    assert f"process {other.pid} of --parent cannot be watched: No such process" in line


def test_a_folder_into_which_others_can_write_is_refused_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "f").mkdir()
    (tmp_path / "f").chmod(0o770)
    line = failure(tmp_path / "f", tmp_path / "kubeconfig")
    assert f"the folder must be yours, but others can write into {tmp_path}/f; choose another one" in line
    assert not (tmp_path / "kubeconfig").exists()


def test_a_file_at_the_kubeconfigs_path_is_refused_and_kept_whenever_it_came(tmp_path: Path) -> None:
    mine = tmp_path / "config"
    mine.write_text("clusters: []\n")
    line = failure(tmp_path / "f", mine)
    assert f"--kubeconfig {mine} is there already; remove it, or give a path where no file is" in line
    with pytest.raises(FileExistsError):
        write_kubeconfig(mine, "http://127.0.0.1:1", "secret")
    assert [path.name for path in tmp_path.iterdir()] == ["config"]
    assert mine.read_text() == "clusters: []\n"


def objective(parameters: dict[str, str]) -> None:
    """Katib's own first example: the SDK sends this source to the trial."""
    result = 4 * int(parameters["a"]) - float(parameters["b"]) ** 2
    print(f"result={result}")


def test_the_first_example_of_katibs_documentation_runs_to_its_optimum(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    katib: Any = pytest.importorskip("kubeflow.katib", reason="needs kubeflow-katib")
    monkeypatch.setenv("TMPDIR", str(tmp_path))  # the SDK's script makes a temporary folder and leaves it
    monkeypatch.setenv("PATH", os.defpath)  # the pods find the server's own python
    with program(tmp_path / "c") as server:
        client = katib.KatibClient(config_file=str(server.kubeconfig), namespace="kubeflow")
        parameters = {"a": katib.search.int(min=10, max=13), "b": "0.2"}
        client.tune(
            name="example",
            objective=objective,
            parameters=parameters,
            algorithm_name="grid",
            objective_metric_name="result",
            max_trial_count=4,
            parallel_trial_count=2,
            resources_per_trial={"cpu": "2"},
        )
        client.wait_for_experiment_condition("example", timeout=60, polling_interval=1)
        drawn = {}
        for trial in client.list_trials("example"):
            (assignment,) = trial.spec.parameter_assignments
            drawn[trial.metadata.name] = pytest.approx(4 * int(assignment.value) - 0.2**2)
        best = client.get_optimal_hyperparameters("example")
        assert float(best.observation.metrics[0].latest) == drawn[best.best_trial_name]
        assert {details["name"] for details in client.get_success_trial_details("example")} == set(drawn)
        assert client.get_suggestion("example").status.suggestion_count == len(drawn) == 4
