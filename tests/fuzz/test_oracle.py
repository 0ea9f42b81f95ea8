"""Negative controls: each way to answer badly is noticed, and each harm is refused before it is done."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from fuzz import sandbox
from fuzz.oracle import problems
from fuzz.sandbox import Main, Place, call_forked


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place.make(tmp_path / "case")


def _prints(out: str = "", err: str = "", code: int = 0) -> Main:
    def main(argv: Sequence[str]) -> int:
        sys.stdout.write(out)
        sys.stderr.write(err)
        return code

    return main


def _does(action: Callable[[], object]) -> Main:
    """Do something that is forbidden; like much code, go on where it is refused."""

    def main(argv: Sequence[str]) -> int:
        try:
            action()
        except OSError:
            return 0
        return 0

    return main


def _raises(argv: Sequence[str]) -> int:
    raise KeyError("x")


def _hangs(argv: Sequence[str]) -> int:
    time.sleep(60)
    return 0


def _fills_memory(argv: Sequence[str]) -> int:
    kept = [bytearray(b"x" * 50_000_000) for _ in range(40)]
    time.sleep(5)
    return len(kept)


def _leaves_a_process(argv: Sequence[str]) -> int:
    subprocess.Popen(["sleep", "60"], start_new_session=True)
    return 0


GOOD = _prints(err="tuneoff: x.yaml: rule, but got value; way out\n", code=2)


def test_one_line_with_a_documented_exit_code_is_right(place: Place) -> None:
    assert [problem for problem in problems(call_forked(GOOD, ["plan", "x"], place)) if "memory" not in problem] == []


@pytest.mark.parametrize(
    ("main", "problem"),
    [
        (_raises, "traceback: KeyError: 'x'"),
        (_prints(err="tuneoff: a fault of tuneoff itself\n", code=70), "exit code 70"),
        (_prints(code=1), "exit code 1, which is not among"),
        (_prints(code=2), "0 lines on standard error for one error"),
        (_prints(err="tuneoff: a\ntuneoff: b\n", code=2), "2 lines on standard error for one error"),
        (_prints(err="warning: a\n"), "a line on standard error that is not tuneoff's"),
        (_prints(err=f"tuneoff: {'a' * 5000}\n", code=2), "a line of 5009 characters"),
        (_prints(err="tuneoff: \x1b[31m\n", code=2), "control characters"),
        (_prints(out="\x07\n"), "control characters"),
        (_leaves_a_process, "left a process: sleep 60"),
    ],
)
def test_each_bad_answer_is_noticed(place: Place, main: Main, problem: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandbox, "LEAVE_SECONDS", 0.3)
    assert any(problem in found for found in problems(call_forked(main, ["plan", "x"], place, may_start_processes=True)))


def test_an_error_beside_progress_has_its_reason_too(place: Place) -> None:
    answer = call_forked(_prints(out="run 1 of 2\n", code=2), ["compare", "f"], place)
    assert problems(answer) == ["exit code 2 without its reason: 'nothing on standard error'"]


@pytest.mark.parametrize("out", ["[1", '{"a": NaN}', ""])
def test_json_that_is_none_is_noticed(place: Place, out: str) -> None:
    answer = call_forked(_prints(out), ["plan", "x", "--json"], place)
    assert any("its JSON cannot be read" in found for found in problems(answer))


@pytest.mark.parametrize(
    ("action", "problem"),
    [
        (lambda: Path("../../outside").write_text(""), "writes '../../outside'"),
        (lambda: os.mkdir("../../outside"), "os.mkdir"),
        (lambda: os.rename("../kept", "here"), "os.rename"),
        (lambda: os.kill(os.getppid(), signal.SIGCONT), "os.kill"),
        (lambda: os.killpg(os.getppid(), signal.SIGCONT), "os.killpg"),
        (lambda: socket.create_connection(("127.0.0.1", 9), 1), "socket.getaddrinfo"),
        (lambda: socket.socket().connect(("127.0.0.1", 9)), "connects to"),
        (lambda: subprocess.Popen(["true"]), "starts a process"),
    ],
)
def test_each_harm_is_refused_and_noticed(place: Place, tmp_path: Path, action: Callable[[], object], problem: str) -> None:
    answer = call_forked(_does(action), ["plan", "x"], place)
    assert any(problem in found for found in problems(answer))
    assert not (tmp_path / "outside").exists()
    assert place.kept.is_dir()


def test_a_hang_is_ended_and_noticed(place: Place) -> None:
    answer = call_forked(_hangs, ["plan", "x"], place, seconds=0.3)
    assert "hung: not over after 0.3 s" in problems(answer)
    assert answer.code is None


@pytest.mark.slow
def test_too_much_memory_is_ended_and_noticed(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    answer = call_forked(_fills_memory, ["plan", "x"], place)
    assert f"memory: more than {sandbox.MOST_BYTES / 1e6:g} MB" in problems(answer)
