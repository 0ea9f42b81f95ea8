"""`tuneoff watch`: until the matrix ends, on a terminal and anywhere else, once as text and as JSON."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from builders.live_folders import Folder
from command_line import Call
from tell.live.emulator import Emulator
from tuneoff.tell.live import watching
from tuneoff.tell.live.state import STATUSES
from tuneoff.tell.live.watcher import Watcher


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path / "results", seeds=1)


class Matrix:
    """What happens in the folder, one thing whenever the watch waits."""

    def __init__(self, *happenings: Callable[[], object]) -> None:
        self._happenings = list(happenings)
        self.now = 0.0

    def wait(self, seconds: float) -> None:
        self.now += seconds
        if self._happenings:
            self._happenings.pop(0)()

    def clock(self) -> float:
        return self.now


def of(folder: Folder, status: str) -> Matrix:
    """Return a matrix of two runs, of which the second ends so."""
    return Matrix(
        lambda: folder.end("serial", 0, execution="9"),
        lambda: folder.begin("optuna", 0).trial("1"),
        *[lambda: None] * 12,
        lambda: folder.end("optuna", 0, status, execution="9"),  # type: ignore[arg-type]
        lambda: folder.leave(ended=True),
    )


@pytest.mark.parametrize(("status", "code"), [("done", 0), ("failed", 1), ("interrupted", 130)])
def test_lines_tell_what_ends_and_the_exit_code_is_that_of_the_matrix(folder: Folder, status: str, code: int) -> None:
    folder.take()
    folder.begin("serial", 0).write()
    stream, matrix = io.StringIO(), of(folder, status)
    assert watching.watch(Watcher(folder.path), stream, matrix.wait, matrix.clock) == code
    lines = stream.getvalue().splitlines()
    assert lines[0].startswith("digits: 0 of 2 runs ended; [1/2] serial random seed 0: 0/10 trials")
    assert "serial random seed 0: done in 10 s" in lines
    assert any(line.startswith(f"optuna random seed 0: {status}") for line in lines)
    assert any("[2/2] optuna random seed 0: 1/10 trials, best 0.5" in line for line in lines)  # every ten seconds
    assert len(lines) <= 9


def test_a_terminal_shows_the_display_and_keeps_the_last_words(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setattr("tuneoff.tell.live.footer.size_of", lambda stream: (100, 24))
    folder.take()
    folder.begin("serial", 0).write()
    terminal, matrix = Emulator(100), of(folder, "done")
    assert watching.watch(Watcher(folder.path), terminal, matrix.wait, matrix.clock) == 0
    assert terminal.lines == [
        "serial random seed 0: done in 10 s",
        "optuna random seed 0: done in 10 s",
        "digits: 2 of 2 runs ended",
        "so far: serial 10 s; optuna 10 s",
        "all planned runs have ended",
        "",
    ]
    assert "optuna random >" in "".join(terminal.writes)


def test_an_end_is_believed_when_it_is_seen_twice(folder: Folder) -> None:
    folder.take()
    folder.leave(ended=False)
    stream = io.StringIO()
    matrix = Matrix(
        folder.take,  # a command takes the folder just then
        lambda: folder.end("serial", 0),
        lambda: folder.end("optuna", 0),
        lambda: folder.leave(ended=True),
    )
    assert watching.watch(Watcher(folder.path), stream, matrix.wait, matrix.clock) == 0


def test_ctrl_c_ends_the_watch_and_leaves_the_terminal_clean(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    folder.take()

    def interrupt(seconds: float) -> None:
        raise KeyboardInterrupt

    terminal = Emulator(100)
    with pytest.raises(KeyboardInterrupt):
        watching.watch(Watcher(folder.path), terminal, interrupt)
    assert terminal.text == ""


def test_once_prints_the_state_and_ends(folder: Folder, call: Call) -> None:
    folder.take()
    folder.begin("serial", 0).trial("1")
    answer = call("watch", folder.path, "--once")
    assert (answer.code, answer.err) == (0, "")
    assert answer.out.splitlines()[0] == "digits: 0 of 2 runs ended"
    assert "works here" in answer.out
    assert "[1/2] serial random seed 0: 1/10 trials, best 0.5" in answer.out


def test_once_as_json_has_every_run_and_the_current_one(folder: Folder, call: Call) -> None:
    folder.end("serial", 0, "failed")
    folder.take()
    folder.begin("optuna", 0).trial("1")
    found = json.loads(call("watch", folder.path, "--once", "--json").out)
    assert (found["activity"], found["exit_code"], found["runs"], found["ended"]) == ("working", None, 2, 1)
    assert list(found["counts"]) == list(STATUSES)
    assert [[cell["status"] for cell in row["cells"]] for row in found["rows"]] == [["failed"], ["running"]]
    assert (found["current"]["completed"], found["current"]["incumbent"]) == (1, 0.5)
    assert found["texts"]["failures"] == ["serial random seed 0: failed: it failed"]


def test_what_names_would_make_a_terminal_do_is_an_escape_in_text_and_json(tmp_path: Path, call: Call) -> None:
    folder = Folder(tmp_path / "results", seeds=1)
    folder.end("serial", 0, "failed", execution="1")
    folder.write_plan(name="\x1b]0;x\x07<script>")
    for arguments in (["--once"], ["--once", "--json"]):
        out = call("watch", folder.path, *arguments).out
        assert "\x1b" not in out
        assert "x1b" in out


def test_json_needs_once(call: Call, folder: Folder) -> None:
    answer = call("watch", folder.path, "--json")
    assert answer.code == 2
    assert "add --once" in answer.line
