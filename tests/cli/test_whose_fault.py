"""Exit code 70 is for faults of tuneoff alone: what a user, a machine or a plugin did has one line and its own code."""

from __future__ import annotations

import ctypes
import json
import os
import resource
import shlex
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from builders.results_folders import Results, edit
from command_line import Call, File
from tuneoff.base.output import LONGEST_LINE, plain_line
from waiting import until

TUNEOFF = f"{shlex.quote(sys.executable)} -m tuneoff"
NULL = {"workload": "null", "adapters": ["serial"], "budget": {"trials": 2, "epochs_per_trial": 1}, "warm_up": False}


def shell(folder: Path, script: str, preexec: Callable[[], None] | None = None) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(["bash", "-c", script], cwd=folder, capture_output=True, check=False, timeout=120, preexec_fn=preexec)


def as_anybody() -> None:
    """Take from root that no permission stops it (CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH)."""
    for capability in (1, 2) if os.getuid() == 0 else ():
        assert ctypes.CDLL(None).prctl(24, capability, 0, 0, 0) == 0  # PR_CAPBSET_DROP


@pytest.fixture
def shut(tmp_path: Path) -> Iterator[Path]:
    """Return a folder that a script may make unreadable."""
    folder = tmp_path / "shut"
    folder.mkdir()
    yield folder
    folder.chmod(0o700)


@pytest.mark.slow
def test_runs_in_a_current_folder_that_may_not_be_entered_are_refused_before_the_first(tmp_path: Path, shut: Path) -> None:
    (tmp_path / "null.yaml").write_text(json.dumps(NULL))
    done = shell(shut, f"chmod 0 .; {TUNEOFF} compare {tmp_path}/null.yaml --no-report --output {tmp_path}/d", as_anybody)
    assert (done.returncode, done.stderr.count(b"\n")) == (5, 1), done.stderr
    assert f"Permission denied ({shut})".encode() in done.stderr
    assert not (tmp_path / "d").exists()


@pytest.mark.slow
def test_a_folder_is_read_from_a_current_one_that_may_not_be_entered(shut: Path, results: Results) -> None:
    bundle = f"bundle {results.path} --allow-unverified --output {results.path}.tar.gz"
    for command in (f"watch --runs {results.path}", f"verify {results.path}", bundle):
        done = shell(shut, f"chmod 0 .; {TUNEOFF} {command}", as_anybody)
        assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("command", "code"), [("plan x.yaml", 2), ("watch --runs", 5), ("watch --runs x", 5), ("compare x.yaml", 2)]
)
def test_a_path_in_a_current_folder_that_may_not_be_entered_is_one_line(shut: Path, command: str, code: int) -> None:
    done = shell(shut, f"chmod 0 .; {TUNEOFF} {command}", as_anybody)
    assert (done.returncode, done.stderr.count(b"\n")) == (code, 1), done.stderr
    assert b"Permission denied" in done.stderr


def test_a_current_folder_that_was_removed_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "gone").mkdir()
    done = shell(tmp_path / "gone", f"rmdir ../gone; {TUNEOFF} watch --runs")
    assert (done.returncode, done.stderr.count(b"\n")) == (5, 1)
    assert b"the current folder must exist" in done.stderr


def test_the_root_folder_is_no_results_folder_for_a_bundle(call: Call) -> None:
    answer = call("bundle", "/")
    assert (answer.code, "/ is not a results folder" in answer.line) == (5, True)


def test_names_in_a_folder_cannot_steer_a_terminal_through_bundle(call: Call, results: Results) -> None:
    plan = results.path / "matrix.json"
    edit(plan, lambda text: text.replace('"label": "', '"label": "\\u001b[2J\\u0007', 1))
    shutil.rmtree(results.folder(results.plan.runs[0].spec))
    answer = call("bundle", results.path, "--allow-unverified")
    assert answer.code == 0
    assert "missing: " in answer.out
    assert "\\x1b[2J" in answer.out
    assert not {"\x1b", "\x07"} & set(answer.out + answer.err)


def test_a_line_has_at_most_so_many_characters_whatever_it_is_made_of() -> None:
    for length in (LONGEST_LINE, LONGEST_LINE + 1, 123_456):
        line = plain_line("a" * (length - 3) + "end")
        assert (len(line) <= LONGEST_LINE, line[-3:], "characters ...]" in line) == (True, "end", length > LONGEST_LINE)


@pytest.mark.parametrize("text", ["9" * 5000, "a/" * 2500, "\x1b[31m", "a\nb", "\x00", "\udcff"])
def test_an_argument_is_shown_in_short_and_without_what_a_terminal_would_obey(call: Call, text: str) -> None:
    for arguments in (["plan", "x", "--trials", text], ["watch", "--runs", text], ["plan", text]):
        answer = call(*arguments)
        assert answer.code in (2, 5)
        assert len(answer.line) <= LONGEST_LINE
        assert answer.line.isprintable()


def test_a_long_value_of_a_file_keeps_the_way_out(call: Call, file: File, fakes: None) -> None:
    answer = call("plan", file(seeds=[*range(5000), 0]))
    assert answer.code == 2
    assert answer.line.startswith(f"tuneoff: {Path.cwd() / 'experiment.yaml'}: ")
    assert " characters ...] " in answer.line
    assert answer.line.endswith("remove the repeated ones")


@pytest.mark.parametrize("kind", ["workload", "adapters"])
def test_a_plugin_that_ends_the_process_while_it_is_imported_is_broken(call: Call, file: File, tmp_path: Path, kind: str) -> None:
    module = f"quits_at_import_{kind}"  # this process keeps the folder of the case before on its path
    (tmp_path / f"{module}.py").write_text("raise SystemExit(0)\n")
    name = f"{module}:Plugin"
    answer = call("plan", file(**{"adapters": ["serial"], "workload": "null", kind: name if kind == "workload" else [name]}))
    assert answer.code == 6
    assert "ends the process while it is imported (exit code 0)" in answer.line


def test_small_files_are_read_where_memory_is_limited(results: Results) -> None:
    limit = 800_000_000  # of address space; each small file once took 1 GiB of it
    done = subprocess.run(
        [sys.executable, "-m", "tuneoff", "watch", "--runs", str(results.path)],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)),
    )
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.slow
@pytest.mark.parametrize(
    "script",
    [
        f"{TUNEOFF} compare null.yaml --no-report --output d <&- >&- 2>&-",
        f"{TUNEOFF} compare null.yaml --output $'d\\xff' && {TUNEOFF} verify $'d\\xff'",
        f"mkdir d && {TUNEOFF} compare null.yaml --no-report --output d > d/log && {TUNEOFF} verify d",
    ],
    ids=["all streams closed", "folder's name no UTF-8", "log of the shell in the folder"],
)
def test_a_matrix_runs_whatever_the_shell_does_with_its_streams_and_its_folder(tmp_path: Path, script: str) -> None:
    (tmp_path / "null.yaml").write_text(json.dumps(NULL))
    done = shell(tmp_path, script)
    assert done.returncode == 0, done.stderr
    assert len(list(tmp_path.glob("d*/runs/*/*/run.json"))) == 1


@pytest.mark.slow
def test_a_results_folder_that_is_removed_while_it_is_used_is_one_line(tmp_path: Path) -> None:
    slow = {**NULL, "workload": {"name": "sleep", "options": {"epoch_seconds": 0.2}}, "seeds": list(range(9))}
    (tmp_path / "sleep.yaml").write_text(json.dumps(slow))

    def wait() -> None:
        until(lambda: list(tmp_path.glob("d/runs/*/*/run.json")), 100)
        while (tmp_path / "d").exists():  # what is written meanwhile too
            shutil.rmtree(tmp_path / "d", ignore_errors=True)

    thread = threading.Thread(target=wait)
    thread.start()
    done = shell(tmp_path, f"{TUNEOFF} compare sleep.yaml --no-report --output d")
    thread.join()
    assert done.returncode == 5
    assert b"it was removed or renamed" in done.stderr.splitlines()[-1]
