"""No line that a command prints on a terminal is wider than the terminal."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from builders.page_folders import failed, folder, specs
from command_line import Answer, Call
from tuneoff.base.output import columns, write
from tuneoff.cli.explain import TOPICS
from tuneoff.cli.interfaces import INTERFACES
from tuneoff.cli.main import COMMANDS
from tuneoff.record.run_record import FlagRecord, RunRecord

pytestmark = pytest.mark.slow

REPOSITORY = Path(__file__).parents[2]
REASON = "the framework gave up after its third attempt: " + "SomeLongExceptionName: what it said of a worker, " * 5
READING = (
    *("watch --runs", "watch --declared", "check --controls", "verify", "watch --once"),
    *("diff A B", "report --text", "report --text --must-retry"),
)
FILES = ("digits.yaml", "tasks.yaml", "catalogue/S-Pruner.yaml")
LISTING = (
    "list adapters",
    "list adapters serial optuna katib ray-tune syne-tune",
    "list workloads",
    "list platforms",
    "list experiments",
    "list workloads mnist_mlp sleep surrogate",
    "check --list",
    "doctor",
    *(f"plan {REPOSITORY}/benchmarks/{name}" for name in FILES),
    "explain",
    f"explain {' '.join((*TOPICS, *INTERFACES))}",
    *(f"{name} --help" for name in ("", *COMMANDS)),
)


def flagged(run: RunRecord) -> RunRecord:
    names = ("best_differs", "disturbed", "too_few_processors", "machine_drift")
    return replace(run, flags=tuple(FlagRecord(name=name, text="words " * 40) for name in names))


@pytest.fixture
def at_width(call: Call, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> int:
    """Make standard output a terminal of so many columns."""
    monkeypatch.setenv("COLUMNS", str(request.param))
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setattr(type(sys.stdout), "isatty", lambda stream: True)
    return int(request.param)


def too_wide(answer: Answer, width: int) -> list[str]:
    """Return the lines that are wider, but for those that are one word: a path is not broken."""
    return [line for line in answer.out.splitlines() if len(line) > width and " " in line.strip()]


at_widths = pytest.mark.parametrize("at_width", [80, 120], indirect=True)


@pytest.fixture(scope="module")
def read(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with two results folders, which no command here changes."""
    path = tmp_path_factory.mktemp("read")
    changes = {1: failed("failed", REASON), 4: flagged, 5: flagged}
    for name in ("A", "B"):
        folder(path / "results" / name, specs(("serial", "optuna", "ray-tune"), 12), changes, skipped=(8,))
    return path


@at_widths
@pytest.mark.parametrize("command", READING)
def test_what_reads_results_fits(call: Call, read: Path, at_width: int, command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(read)
    arguments = [f"results/{word}" if word in "AB" else word for word in command.split()]
    answer = call(*arguments)
    assert answer.out, answer.err
    assert too_wide(answer, at_width) == []


@pytest.mark.parametrize("at_width", [80], indirect=True)
@pytest.mark.parametrize("command", LISTING)
def test_what_lists_fits(call: Call, at_width: int, command: str) -> None:
    answer = call(*command.split())
    assert answer.out, answer.err
    assert too_wide(answer, at_width) == []


@pytest.mark.parametrize("at_width", [80], indirect=True)
def test_a_serious_flag_is_marked_and_red_and_a_harmless_one_is_not(
    call: Call, tmp_path: Path, at_width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder(tmp_path / "results" / "A", specs(("serial", "optuna"), 1), {1: flagged})
    assert "! best_differs, disturbed" in call("watch", "--runs").out
    monkeypatch.delenv("NO_COLOR")
    monkeypatch.setenv("TERM", "xterm")
    red = "\x1b[31m! best_differs\x1b[0m, disturbed"
    assert red in call("watch", "--runs").out
    assert "\x1b" not in call("watch", "--runs", "--json").out


@at_widths
def test_a_line_that_is_too_wide_is_noticed(call: Call, capsys: pytest.CaptureFixture[str], at_width: int) -> None:
    sys.stdout.write("word " * 30)  # control: past `write`
    long = Answer(0, capsys.readouterr().out, "")
    assert len(too_wide(long, at_width)) == 1
    write("word " * 30)
    write(columns(("name", "text", "note"), [("x" * 30, "word " * 30, "word " * 20)]))
    fitted = Answer(0, capsys.readouterr().out, "")
    assert too_wide(fitted, at_width) == []
    assert fitted.out.split().count("word") == 80
