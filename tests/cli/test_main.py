"""The entry point: help, exit codes, and that no traceback reaches a user."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from command_line import Call
from fake_plugins import plugin
from tuneoff import errors, registry
from tuneoff.cli.main import COMMANDS, EXIT_CODES, all_commands, core_command

NAMES = [command.NAME for command in all_commands()]


def test_the_help_lists_every_command_and_exit_code(call: Call) -> None:
    answer = call("--help")
    assert answer.code == 0
    shown = " ".join(answer.out.split())
    for text in (*NAMES, *EXIT_CODES.values()):
        assert text in shown


def test_every_exit_code_of_an_error_is_documented() -> None:
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, errors.TuneoffError)]
    codes = {kind.exit_code for kind in kinds}
    assert codes <= set(EXIT_CODES)


def _raise(error: BaseException) -> None:
    raise error


def test_a_fault_of_tuneoff_is_one_line_with_its_traceback_saved(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tuneoff.registry.list_adapters", lambda names: _raise(ZeroDivisionError("planted")))
    answer = call("list", "adapters")
    assert answer.code == 70
    assert "ZeroDivisionError: planted" in answer.line
    saved = Path(answer.line.rpartition(" ")[2])
    assert "in _raise" in saved.read_text()
    saved.unlink()


def test_debug_shows_the_traceback(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tuneoff.registry.list_adapters", lambda names: _raise(ZeroDivisionError("planted")))
    for arguments in (["--debug", "list", "adapters"], ["list", "adapters", "--debug"]):
        answer = call(*arguments)
        assert answer.code == 70
        assert "Traceback" in answer.err


def test_an_interrupted_command_says_so(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tuneoff.registry.list_adapters", lambda names: _raise(KeyboardInterrupt()))
    answer = call("list", "adapters")
    assert answer.code == 130
    assert answer.line == "tuneoff: interrupted"


def test_a_reader_that_goes_away_is_no_fault() -> None:
    read, write = os.pipe()
    os.close(read)
    try:
        finished = subprocess.run([sys.executable, "-m", "tuneoff", "list", "adapters"], stdout=write, stderr=subprocess.PIPE)
    finally:
        os.close(write)
    assert (finished.returncode, finished.stderr) == (141, b"")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="the platform has no /dev/full")
def test_a_full_disk_behind_standard_output_is_one_line() -> None:
    with Path("/dev/full").open("w") as full:
        finished = subprocess.run(
            [sys.executable, "-m", "tuneoff", "list", "adapters"], stdout=full, stderr=subprocess.PIPE, text=True
        )
    assert finished.returncode == 5
    assert finished.stderr.count("\n") == 1
    assert "standard output must be writable, but: No space left on device" in finished.stderr


def test_text_that_the_terminal_cannot_show_is_escaped() -> None:
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    script = "from tuneoff.base import output; from tuneoff.cli import main; main.main(['--version']); output.write('\\u2013')"
    finished = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True)
    assert (finished.returncode, finished.stderr) == (0, "")
    assert finished.stdout.endswith("\\u2013\n")


def test_every_command_is_a_command() -> None:
    assert tuple(core_command(name).NAME for name in COMMANDS) == COMMANDS
    assert len(set(NAMES)) == len(NAMES)


OWN = """
NAME, HELP, EXAMPLE = "own", "do it", "tuneoff own --times 2"
def add_arguments(parser): parser.add_argument("--times", type=int)
def execute(arguments): return arguments.times
"""
ADDED = {
    "own": ("own_command", ""),
    "half": ("half_command", "must have NAME, HELP, EXAMPLE, add_arguments and execute"),
    "gone": ("no_such_command", "No module named 'no_such_command'"),
    "other": ("own_command", "must have NAME"),  # its name is another one
}


@pytest.fixture
def added(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Install a package with a command, and three whose commands are none."""
    (tmp_path / "own_command.py").write_text(OWN)
    (tmp_path / "half_command.py").write_text("NAME = 'half'\n")
    monkeypatch.syspath_prepend(tmp_path)
    plugins = tuple(plugin(name, target) for name, (target, _) in ADDED.items())
    monkeypatch.setattr(registry, "scan", {"command": plugins}.__getitem__)


@pytest.mark.usefixtures("added")
def test_a_package_adds_a_command_and_a_broken_one_hides_no_other(call: Call) -> None:
    assert call("own", "--times", "2").code == 2
    answer = call("--help")
    assert answer.code == 0
    assert "own " in answer.out
    assert "half" not in answer.out
    for name in ("half", "gone", "other"):
        assert ADDED[name][1] in answer.err
        asked = call(name)
        assert (asked.code, ADDED[name][1] in asked.line) == (6, True)


@pytest.mark.usefixtures("added")
def test_no_package_is_looked_for_where_the_command_is_core_s(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))  # of the traceback that is kept
    monkeypatch.setattr(registry, "scan", lambda kind: _raise(AssertionError(kind)))
    assert call("--debug", "explain", "--schema", "experiment").code == 0
    assert call("bogus").code == 70  # control: it is where it is not
