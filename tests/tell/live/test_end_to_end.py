"""A real matrix, watched from another process and served to a browser until it ends, or is killed."""

from __future__ import annotations

import json
import re
import shlex
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import pytest

from builders.live_folders import Folder, snapshot
from command_line import caller
from e2e.following import Following
from e2e.random_kills import GONE_WITHIN_SECONDS
from tuneoff.run.run_ends import run_ends

pytestmark = pytest.mark.slow

T = TypeVar("T")
Once = Callable[[Path], dict[str, Any]]
DEADLINE_SECONDS = 90.0
MATRIX = """
name: watched
workload: {name: sleep, options: {epoch_seconds: 0.2}}
search_space:
  x: {type: float, low: 0.0, high: 1.0}
sampler: random
budget: {trials: 6, epochs_per_trial: 3}
workers: {count: 2}
adapters: [serial]
seeds: [0, 1]
warm_up: false
"""


@contextmanager
def started(*arguments: str | Path) -> Iterator[subprocess.Popen[str]]:
    """Start a command, and end it if the block has not."""
    words = [sys.executable, "-m", "tuneoff", *map(str, arguments)]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()


def until(get: Callable[[], T], holds: Callable[[T], bool]) -> T:
    """Ask until it holds, and return that answer."""
    deadline = time.monotonic() + DEADLINE_SECONDS
    while not holds(found := get()):
        assert time.monotonic() < deadline, found
        time.sleep(0.05)
    return found


@pytest.fixture
def once(capsys: pytest.CaptureFixture[str]) -> Once:
    """Return a function that asks `tuneoff watch --once --json`: in this process, which asks many times."""
    call = caller(capsys)

    def ask(results: Path) -> dict[str, Any]:
        answer = call("watch", results, "--once", "--json")
        assert (answer.code, answer.err) == (0, "")
        found: dict[str, Any] = json.loads(answer.out)
        return found

    return ask


def fetched(address: str) -> str:
    with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(address, timeout=DEADLINE_SECONDS) as answer:
        text: str = answer.read().decode()
        return text


def is_training(state: dict[str, Any]) -> bool:
    return state["current"] is not None and state["current"]["ended"] > 0


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "matrix.yaml"
    path.write_text(MATRIX)
    return path


def test_a_matrix_is_seen_from_its_first_trial_to_its_end(file: Path, tmp_path: Path, once: Once) -> None:
    pytest.importorskip("jinja2")
    results = tmp_path / "results"
    with started("compare", "--no-report", "--json", file, "--output", results) as compare:
        until((results / "matrix.json").exists, bool)
        with started("watch", "--serve", results) as serve, started("watch", results) as watch:
            assert serve.stdout is not None
            url = serve.stdout.readline().strip()
            assert url.startswith("http://127.0.0.1:")
            state = until(lambda: once(results), is_training)
            assert (state["activity"], state["pid"], state["exit_code"]) == ("working", compare.pid, None)
            assert state["counts"]["running"] == 1
            served = until(lambda: json.loads(fetched(f"{url}state.json")), is_training)
            assert served["pid"] == compare.pid
            assert "serial random seed" in fetched(url)
            seen = [state["ended"]]
            last = until(lambda: _noted(once(results), seen), lambda found: found["exit_code"] is not None)
            assert seen == sorted(seen)
            assert (last["activity"], last["exit_code"], last["counts"]["done"]) == ("finished", 0, 2)
            out, err = watch.communicate(timeout=DEADLINE_SECONDS)
            assert (watch.returncode, err) == (0, "")
            assert "serial random seed 1: done" in out
            assert out.splitlines()[-1] == "all planned runs have ended"
            compare.communicate(timeout=DEADLINE_SECONDS)
            assert compare.returncode == 0
            assert [end.status for end in run_ends(results)] == ["done", "done"]
            before = snapshot(results)
            ended = until(lambda: json.loads(fetched(f"{url}state.json")), lambda found: found["exit_code"] == 0)
            assert [cell["status"] for cell in ended["rows"][0]["cells"]] == ["done", "done"]
            links = set(re.findall(r'href="(runs/[^"]+)"', fetched(url)))
            assert len(links) == 2
            assert {json.loads(fetched(url + link))["status"] for link in links} == {"done"}
            serve.send_signal(signal.SIGTERM)
            _, err = serve.communicate(timeout=DEADLINE_SECONDS)
            assert (serve.returncode, err) == (0, "")
            with pytest.raises(OSError, match="refused"):
                fetched(url)
            assert snapshot(results) == before


def _noted(state: dict[str, Any], seen: list[int]) -> dict[str, Any]:
    seen.append(state["ended"])
    return state


def test_a_killed_matrix_is_seen_to_be_dead_and_the_printed_command_completes_it(file: Path, tmp_path: Path, once: Once) -> None:
    results, following = tmp_path / "results", Following()
    with started("compare", "--no-report", "--json", file, "--output", results) as compare:
        until((results / "matrix.json").exists, bool)
        with started("watch", results) as watch:
            until(lambda: once(results), is_training)
            following.look(results)
            compare.send_signal(signal.SIGKILL)
            compare.communicate()
            state = once(results)  # at once, with no time for anything to be noticed
            assert (state["activity"], state["exit_code"]) == ("stopped", 130)
            assert state["current"] is None
            assert "its tuneoff command was killed" in [cell["reason"] for cell in state["rows"][0]["cells"]]
            out, _ = watch.communicate(timeout=DEADLINE_SECONDS)
            assert watch.returncode == 130
    said = next(line for line in out.splitlines() if line.startswith("no command works here any more"))
    command = shlex.split(said.rpartition(": ")[2])
    killed = time.monotonic()
    while left := following.left():
        assert time.monotonic() - killed < GONE_WITHIN_SECONDS, left
        time.sleep(0.05)
    subprocess.run(command, capture_output=True, check=True, timeout=DEADLINE_SECONDS)
    assert once(results)["activity"] == "finished"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP])
def test_a_signal_ends_serve_cleanly(file: Path, tmp_path: Path, number: signal.Signals) -> None:
    folder = Folder(tmp_path / "results")
    with started("watch", "--serve", folder.path, "--address", "0.0.0.0") as serve:
        assert serve.stdout is not None
        url = serve.stdout.readline().strip()
        assert "?token=" in url
        serve.send_signal(number)
        out, err = serve.communicate(timeout=DEADLINE_SECONDS)
        assert (serve.returncode, out) == (0, "")
        assert err.count("\n") == 1
        assert "the token gives read access" in err
