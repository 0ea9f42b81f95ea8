"""The server as a program: how it starts, what it writes, how it ends."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from emulated.program import COMMAND, failure, program
from katib_emulation.__main__ import write_kubeconfig
from tuneoff.base.processes import is_alive
from waiting import until

pytestmark = pytest.mark.slow  # processes, or faults that have to last


def test_it_serves_when_the_kubeconfig_is_there_and_takes_it_away_at_the_end(tmp_path: Path) -> None:
    with program(tmp_path / "f") as server:
        assert server.ask("GET", "/version")["gitVersion"].endswith("emulated")
        assert server.kubeconfig.stat().st_mode & 0o077 == 0  # it holds a secret
        assert server.folder.stat().st_mode & 0o077 == 0
        started = time.monotonic()
        assert server.end() == (0, "")
        assert time.monotonic() - started < 10
        assert not server.kubeconfig.exists()


def test_an_interrupt_ends_it_too(tmp_path: Path) -> None:
    with program(tmp_path / "f") as server:
        server.process.send_signal(signal.SIGINT)
        assert server.wait() == (0, "")


def test_it_ends_while_watches_are_open(tmp_path: Path) -> None:
    with program(tmp_path / "f") as server:
        token = server.config["users"][0]["user"]["token"]
        request = urllib.request.Request(
            f"http://127.0.0.1:{server.port}/api/v1/namespaces?watch=true", headers={"Authorization": f"Bearer {token}"}
        )
        with urllib.request.urlopen(request, timeout=10) as watch:
            assert b"ADDED" in watch.readline()
            server.process.terminate()
            assert server.wait() == (0, "")


def test_pods_end_with_the_server(tmp_path: Path) -> None:
    container = {"name": "c", "image": "i:1", "command": ["sleep", "60"]}
    job = {"metadata": {"name": "j"}, "spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [container]}}}}
    with program(tmp_path / "f") as server:
        server.ask("POST", "/apis/batch/v1/namespaces/default/jobs", job)
        sleeping = until(lambda: processes_below(server.folder))
        server.process.send_signal(signal.SIGTERM)
        server.wait()
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


def test_it_outlives_the_thread_that_started_it(tmp_path: Path) -> None:
    start = (
        "import subprocess, sys, threading, time\n"
        "made = []\n"
        "thread = threading.Thread(target=lambda: made.append(subprocess.Popen(sys.argv[1:])))\n"
        "thread.start(); thread.join(); print(made[0].pid, flush=True); time.sleep(60)"
    )
    kubeconfig = tmp_path / "kubeconfig"
    command = [sys.executable, "-c", start, *COMMAND, str(tmp_path / "f"), "--kubeconfig", str(kubeconfig)]
    parent = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    pid = int(parent.stdout.readline())
    try:
        until(kubeconfig.exists)
        assert is_alive(pid)
    finally:
        parent.kill()
        parent.communicate()
    until(lambda: not is_alive(pid), 3)


def test_a_parent_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    other = subprocess.Popen(["true"])
    other.wait()
    line = one_line_of_failure(tmp_path, "--parent", str(other.pid))
    assert f"process {other.pid} of --parent cannot be watched: No such process" in line
    assert not (tmp_path / "f").exists()


def test_it_ends_with_any_process_that_is_named(tmp_path: Path) -> None:
    other = subprocess.Popen(["sleep", "60"])
    try:
        with program(tmp_path / "f", "--parent", str(other.pid)) as server:
            assert server.ask("GET", "/version")
            other.kill()
            assert server.wait() == (0, "")
    finally:
        other.kill()
        other.wait()


def test_one_line_says_when_it_serves(tmp_path: Path) -> None:
    command = [*COMMAND, str(tmp_path / "f"), "--kubeconfig", str(tmp_path / "k")]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    until((tmp_path / "k").exists)
    address = json.loads((tmp_path / "k").read_text())["clusters"][0]["cluster"]["server"]
    server.terminate()
    line = server.communicate(timeout=20)[0]
    assert line.count("\n") == 1
    for part in (f"on {address};", f"kubeconfig {tmp_path / 'k'};", f"files in {tmp_path / 'f'};", f"kill {server.pid}"):
        assert part in line


def test_it_serves_though_nobody_reads_its_line(tmp_path: Path) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    command = [*COMMAND, str(tmp_path / "f"), "--kubeconfig", str(tmp_path / "k")]
    server = subprocess.Popen(command, stdout=writer)
    os.close(writer)
    until((tmp_path / "k").exists)
    server.terminate()
    assert server.wait(20) == 0


def one_line_of_failure(tmp_path: Path, *options: str) -> str:
    """Run the program to its end; return the single line it must write."""
    line = failure(tmp_path / "f", tmp_path / "kubeconfig", *options)
    assert not (tmp_path / "kubeconfig").exists()
    return line


@pytest.mark.parametrize("mode", [0o777, 0o770])
def test_a_folder_into_which_others_can_write_is_refused_in_one_line(tmp_path: Path, mode: int) -> None:
    (tmp_path / "f").mkdir()
    (tmp_path / "f").chmod(mode)
    assert f"the folder must be yours, but others can write into {tmp_path}/f; choose another one" in one_line_of_failure(
        tmp_path
    )


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (["--parent", "many"], "invalid int value: 'many'"),
        (["--lose-answers", "some"], "invalid int value: 'some'"),
    ],
)
def test_wrong_arguments_are_refused(tmp_path: Path, options: list[str], text: str) -> None:
    command = [*COMMAND, str(tmp_path / "f"), "--kubeconfig", str(tmp_path / "k"), *options]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=20, check=False)
    assert ended.returncode == 2
    assert text in ended.stderr
    assert "Traceback" not in ended.stderr
    assert not (tmp_path / "f").exists()


def test_katib_may_be_missing(tmp_path: Path) -> None:
    with program(tmp_path / "f", "--without-katib") as server:
        for path in ("/apis/kubeflow.org", "/apis/kubeflow.org/v1beta1/experiments"):
            with pytest.raises(urllib.error.HTTPError, match="404"):
                server.ask("GET", path)
        assert server.ask("GET", "/apis/batch/v1/jobs")["items"] == []


def test_requests_are_logged_where_asked(tmp_path: Path) -> None:
    with program(tmp_path / "f", "--access-log", str(tmp_path / "log")) as server:
        server.ask("GET", "/version")
        fields = until(lambda: (tmp_path / "log").read_text()).split("\t")
    assert fields[1:4] == ["GET", "/version", "200"]


def test_pods_find_the_python_that_serves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    container = {"name": "c", "image": "i:1", "command": ["bash", "-c", "command -v python"]}
    job = {"metadata": {"name": "j"}, "spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [container]}}}}
    with program(tmp_path / "f") as server:
        server.ask("POST", "/apis/batch/v1/namespaces/default/jobs", job)
        until(lambda: server.ask("GET", "/apis/batch/v1/namespaces/default/jobs/j")["status"].get("succeeded"))
        (pod,) = server.ask("GET", "/api/v1/namespaces/default/pods")["items"]
        name = pod["metadata"]["name"]
        assert server.text(f"/api/v1/namespaces/default/pods/{name}/log").strip() == str(Path(sys.executable).parent / "python")


def test_a_file_at_the_kubeconfigs_path_is_refused_and_kept(tmp_path: Path) -> None:
    mine = tmp_path / "config"
    mine.write_text("clusters: []\n")
    line = failure(tmp_path / "f", mine)
    assert f"--kubeconfig {mine} is there already; remove it, or give a path where no file is" in line
    assert mine.read_text() == "clusters: []\n"
    assert not (tmp_path / "f").exists()


def test_a_file_that_comes_while_the_server_starts_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "config"
    path.write_text("clusters: []\n")
    with pytest.raises(FileExistsError):
        write_kubeconfig(path, "http://127.0.0.1:1", "secret")
    assert [path.name for path in tmp_path.iterdir()] == ["config"]
    assert path.read_text() == "clusters: []\n"
