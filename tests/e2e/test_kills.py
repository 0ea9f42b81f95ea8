"""A killed command leaves nothing behind and resumes. `make kill-test` does this at 20 random moments."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

from e2e import random_kills
from e2e.matrix_runs import Broken, check_finished_runs, finish
from tuneoff.base.processes import descendants, end_all
from tuneoff.run.supervisor.leftovers import shared_memory

pytestmark = pytest.mark.slow(first=True)

PLANTED = """
import mmap, os, socket, sys, time
if len(sys.argv) == 1:
    if os.fork():
        os._exit(0)
    os.setsid()
    if os.fork():
        os._exit(0)
    os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:], "again"], {})
file = os.open(f"/dev/shm/planted-{os.getpid()}", os.O_RDWR | os.O_CREAT, 0o600)
os.truncate(file, 4096)
memory = mmap.mmap(file, 4096)
server = socket.create_server(("127.0.0.1", 0))
print(os.getpid(), flush=True)
time.sleep(600)
"""


def test_compare_killed_at_random_moments_leaves_nothing_and_resumes(tmp_path: Path) -> None:
    file = tmp_path / "one_seed.yaml"
    file.write_text(
        f"include: {random_kills.MATRIX}\nseeds: [0]\nadapters: [syne-tune, serial]\n"
    )  # the others: test_killed_command
    random_kills.kill_many(file, tmp_path / "results", 1, random.Random(os.getpid()), 12.0)


def test_kills_that_come_too_late_do_not_count_and_end_with_the_way_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    too_late = [True, False, True, True, False]
    folders: list[str] = []

    def kill_once(file: Path, results: Path, *arguments: object) -> random_kills.Kill:
        folders.append(results.name)
        return random_kills.Kill(1.0, 0.1, 0, ended_before=not too_late or too_late.pop(0))

    monkeypatch.setattr(random_kills, "kill_once", kill_once)
    monkeypatch.setattr(random_kills, "finish", lambda file, folder: None)
    monkeypatch.setattr(random_kills, "run_ends", lambda folder: [])
    random_kills.kill_many(random_kills.MATRIX, tmp_path / "results", 2, random.Random(0), 20.0)
    assert folders == ["results-0", "results-1", "results-1", "results-2", "results-3"]
    with pytest.raises(Broken, match="shorten --longest"):
        random_kills.kill_many(random_kills.MATRIX, tmp_path / "results", 2, random.Random(0), 20.0)


def test_the_checks_notice_a_daemon_its_port_and_its_shared_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(random_kills, "GONE_WITHIN_SECONDS", 0.2)
    before = set(descendants(os.getpid()))
    try:
        with pytest.raises(Broken, match=r"(?s)left 0\.2 s after a kill(?=.*process )(?=.*port ).*shared memory planted-"):
            random_kills.kill_once(random_kills.MATRIX, tmp_path / "results", 1.0, PLANTED)
    finally:
        end_all(lambda: set(descendants(os.getpid())) - before)
        for name in shared_memory():
            if name.startswith("planted-"):
                os.unlink(f"/dev/shm/{name}")


def test_the_checks_notice_a_changed_event_file(tmp_path: Path) -> None:
    file = tmp_path / "one.yaml"
    file.write_text(f"include: {random_kills.MATRIX}\nseeds: [0]\nadapters: [serial]\n")
    results = tmp_path / "results"
    finish(file, results)
    (events, *_) = results.glob("runs/*/*/events/worker-*.jsonl")
    as_it_was = events.read_bytes()
    with events.open("a") as log:
        log.write("{}\n")
    with pytest.raises(Broken, match="changed"):
        check_finished_runs(results)
    events.write_bytes(as_it_was)
