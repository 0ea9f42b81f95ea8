"""What commands print of the recorded folders, word for word; `pytest tests/corpus --snapshot-update` writes it anew."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from corpus.cases import CASES, SPACE, Case
from corpus.conftest import Recorded, padded
from corpus.figures import call
from tuneoff.cli.explain import TOPICS
from tuneoff.cli.main import COMMANDS

STATES = tuple(case.name for case in CASES if case.name != "judged-again")
PAGES = ("digits", "judged", "tasks", "pruners", "katib", "resumed", "failed", "energy")
OF_FOLDERS = (
    *(("watch --runs", name) for name in STATES),
    *(("report --text", name) for name in STATES if not name.startswith("damaged")),
    *(
        ("verify", name)
        for name in STATES
        if name.startswith("damaged") or name in ("digits", "resumed", "interrupted", "killed", "unrecorded")
    ),
    *(("watch --once", name) for name in ("digits", "interrupted", "killed", "late", "pruners")),
    *(("watch --tables", name) for name in ("digits", "judged", "tasks", "retries", "katib", "energy")),
    *(("watch --declared", name) for name in ("digits", "workers", "katib", "listed")),
    *(("check --controls", name) for name in ("digits", "judged", "listed", "tasks", "damaged-record", "no-power")),
    ("report --text --must-retry --workers 2", "digits"),
    ("report --text --sampler tpe", "judged"),
    ("report --text --baseline baseline", "digits"),
    ("report --text --baseline optun", "digits"),
    ("report --text --workers 2 --trials 4", "workers"),
    ("report --text --trials 3", "tasks"),
)
ALONE = (
    *(f"{command} --help" for command in COMMANDS),
    *(f"explain {topic}" for topic in TOPICS),
    *(
        "explain --schema experiment",
        "explain --schema run",
        "explain --schema prices",
        "list platforms",
        "list experiments",
        "check --workload --list",
        "explain",
        "--help",
    ),
)
DRAWN = {"sampler": "fixed", "configurations": {"sample": 3, "seed": 0}}
LISTED = {**DRAWN, "pruner": "scripted"}
TWICE = [{"learning_rate": 0.1, "hidden_width": 9, "dropout": 0.1}] * 2
FILES: dict[str, dict[str, Any]] = {  # what is planned of files with these keys, or why they are refused
    "anchors the wrong way round": {"anchors": {"random_search": 0.1, "best_known": 1.5, "source": "none"}},
    "a stop of the last epoch": {**LISTED, "stops": [{"index": 0, "after_epoch": 3}]},
    "a stop beyond the list": {**LISTED, "stops": [{"index": 3, "after_epoch": 1}]},
    "a stop twice": {**LISTED, "stops": [{"index": 0, "after_epoch": 1}, {"index": 0, "after_epoch": 2}]},
    "no stops": LISTED,
    "a configuration twice": {"sampler": "fixed", "configurations": TWICE},
    "more trials than configurations": {"sampler": "fixed", "configurations": TWICE[:1]},
    "an option that random has not": {"sampler": {"name": "random", "size": 3}},
    "an option out of range": {"sampler": {"name": "tpe", "n_startup_trials": -1}, "adapters": ["optuna", "serial"]},
    "a flag that is a number": {"sampler": {"name": "tpe", "multivariate": 1}, "adapters": ["optuna"]},
    "a pruner beyond the epochs": {"pruner": {"name": "median", "first_epoch": 4}},
    "a pruner's defaults": {"pruner": "median", "adapters": ["optuna", "serial"]},
    "draws of every kind": {
        **DRAWN,
        "workload": "null",
        "search_space": {
            **SPACE,
            "kind": {"type": "categorical", "choices": ["a", None, [1, 2], 3]},
            "size": {"type": "ordered", "values": [1, 2, 4]},
            "count": {"type": "int", "low": 3, "high": 27, "step": 8},
            "share": {"type": "float", "low": -1.0, "high": 1.0},
            "fixed": {"type": "constant", "value": 1},
        },
        "configurations": {"sample": 30, "seed": 1},
        "budget": {},
    },
    "a grid of real numbers": {"sampler": "grid"},
    "retries": {"failures": {"retries": 1}, "adapters": ["serial", {"name": "katib", "platform": "emulated"}]},
    "limits on an emulation": {"workers": {"cpu_limit": "affinity"}, "adapters": [{"name": "katib", "platform": "emulated"}]},
    "an unknown adapter": {"adapters": ["seriel"]},
    "an unknown platform": {"adapters": [{"name": "optuna", "platform": "moon"}]},
    "an unknown sampler": {"sampler": "rondom"},
    "an unknown metric": {"objective": {"metric": "validation_los"}},
    "an unknown key": {"bugdet": 1},
    "a wrong direction": {"objective": {"metric": "validation_loss", "mode": "max"}},
    "a wrong type": {"budget": {"trials": "4"}},
    "seeds that fall": {"seeds": "3-1"},
    "seeds in short": {"seeds": "0-2,7"},
    "equal entries, variants and a warm-up": {
        "adapters": ["serial", "optuna", "serial", {"name": "optuna", "options": {"start": "forkserver"}}],
        "matrix": {"workers.count": [1, 2]},
        "seeds": [0, 1],
        "warm_up": True,
    },
}
_TAG = re.compile(r"<(style|script).*?</\1>|<[^>]*>", re.DOTALL)


@pytest.fixture(autouse=True)
def wide(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make every terminal as wide as another."""
    monkeypatch.setenv("COLUMNS", "130")


@pytest.mark.parametrize(("command", "name"), OF_FOLDERS, ids=lambda word: word)
def test_a_command_says_of_a_folder(command: str, name: str, recorded: Recorded, snapshot: SnapshotAssertion) -> None:
    answer = call(recorded(name), *command.split(), str(recorded(name)))
    assert answer.text == snapshot


@pytest.mark.parametrize(
    ("old", "new"), [("judged", "judged-again"), ("listed", "damaged-record"), ("digits", "judged"), ("digits", "digits")]
)
def test_the_difference_of_two_folders(old: str, new: str, recorded: Recorded, snapshot: SnapshotAssertion) -> None:
    answer = call(recorded(old), "diff", str(recorded(old)), str(recorded(new)))
    assert answer.text == snapshot


@pytest.mark.parametrize("command", ALONE)
def test_a_command_says_of_itself(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, snapshot: SnapshotAssertion
) -> None:
    if command == "list platforms":
        monkeypatch.setenv("PATH", str(tmp_path))  # with SLURM's commands on no machine
    answer = call(tmp_path, *command.split())
    assert answer.text == snapshot


@pytest.mark.parametrize("what", FILES)
def test_a_file_is_planned_or_refused(
    what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, snapshot: SnapshotAssertion
) -> None:
    monkeypatch.chdir(tmp_path)
    known = {"workload": "surrogate", "search_space": SPACE, "adapters": ["serial"]}
    Case(name="file", experiment={**known, **FILES[what]}).write(tmp_path)
    assert call(tmp_path, "plan", "file.yaml").text == snapshot


def test_without_a_folder_the_newest_is_meant(
    recorded: Recorded, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, snapshot: SnapshotAssertion
) -> None:
    place = padded(tmp_path)
    monkeypatch.chdir(place)
    for hour, name in enumerate(("judged-again", "stated-power", "judged")):
        folder = shutil.copytree(recorded(name), place / "results" / name)
        os.utime(folder / "matrix.json", (hour * 3600, hour * 3600))
    assert call(place / "results", "watch", "--runs").text == snapshot
    assert call(place / "results", "diff").text == snapshot


@pytest.mark.parametrize("command", ["watch --runs", "verify", "report --text", "watch --once", "check --controls"])
def test_nothing_of_a_plan_was_run(command: str, recorded: Recorded, tmp_path: Path, snapshot: SnapshotAssertion) -> None:
    folder = padded(tmp_path) / "digits"
    folder.mkdir()
    shutil.copy(recorded("digits") / "matrix.json", folder)
    assert call(folder, *command.split(), str(folder)).text == snapshot


@pytest.mark.parametrize("name", PAGES)
def test_a_page(name: str, recorded: Recorded, snapshot: SnapshotAssertion) -> None:
    folder = recorded(name)
    page = folder.with_name(f"{name}-page")  # its links have the same way to the runs everywhere
    assert call(folder, "report", str(folder), "--output", str(page)).code == 0
    assert page_text((page / "report.html").read_text().replace(str(folder.parent), "DIR")) == snapshot


def page_text(page: str) -> str:
    """Return what a page shows, a line for each run of text, and where its plots have their points and its links lead."""
    shown = _TAG.sub(lambda tag: f"\n{_drawn(tag[0])}\n", page)
    return "\n".join(" ".join(line.split()) for line in shown.splitlines() if line.strip())


def _drawn(tag: str) -> str:
    places = re.findall(r' (?:d|points|x|y|cx|cy|x1|x2|y1|y2|width|height|href|class|data-shade)="[^"]*"', tag)
    return f"<{''.join(places).strip()}>" if places and not tag.startswith(("<style", "<script")) else ""
