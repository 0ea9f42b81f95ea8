"""Each kind of bad input is one line (rule, value, way out) and a documented exit code, before any framework starts."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pytest

import fake_plugins
from command_line import Call, File, forbid_runs
from tuneoff.base.layout import PLAN

NAN = "workload: curve\nadapters: [{name: plain, options: {api_seconds: .nan}}]\nbudget: {trials: 1}\n"
INFINITE = "workload: {name: curve, options: {noise: [1, .inf]}}\nadapters: [plain]\nbudget: {trials: 1}\n"
NUMBER = "must be a finite number, but got"
NOWHERE = "--adapter: adapter 'nowhere:Nothing' is not there: no module named 'nowhere'; install"


@pytest.mark.parametrize(
    ("content", "adapter", "code", "parts"),
    [
        ({"samplr": "random"}, "plain", 2, ["experiment.yaml: ", "unknown key", "'samplr'", "did you mean 'sampler'"]),
        ({"workload": "curv"}, "plain", 2, ["experiment.yaml: ", "no workload named", "'curv'", "did you mean 'curve'"]),
        ("a: [1\n", "plain", 2, ["not YAML"]),
        (NAN, "plain", 2, [f"experiment.yaml: adapters.0.options: option `api_seconds` {NUMBER} nan"]),
        (INFINITE, "plain", 2, [f"experiment.yaml: workload.options: option `noise` {NUMBER} inf"]),
        ({}, "plain --trials 0", 2, ["tuneoff: --trials: must be at least 1, but got 0"]),
        ({}, "plain,", 2, ["names must not be empty"]),
        ({}, "nowhere:Nothing", 2, [NOWHERE]),
        ({}, "missing", 3, ["needs the nowhere-tune package; run: pip install nowhere-tune"]),
        ({}, "outdated", 3, ["needs PyYAML >= 99.1, but "]),
        ({}, "failing", 6, ["adapter 'failing' fails to check a run: KeyError"]),
        ({"sampler": "tpe"}, "plain", 2, ["sampler 'tpe' is not offered by the framework"]),
        ({"workload": "heavy"}, "plain", 3, ["workload 'heavy' needs no_such_module; run: pip install"]),
    ],
)
def test_what_cannot_be_run_is_one_line(
    call: Call,
    file: File,
    fakes: None,
    content: dict[str, Any] | str,
    adapter: str,
    code: int,
    parts: list[str],
) -> None:
    path = file(content) if isinstance(content, str) else file(**content)
    answer = call("compare", path, "--adapter", *adapter.split())
    assert (answer.code, [part for part in ("tuneoff: ", *parts) if part not in answer.line]) == (code, [])
    assert not Path("results").exists()


def test_a_file_that_cannot_be_read_and_a_broken_plugin_are_one_line(
    call: Call, file: File, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = call("doctor", "nowhere.yaml")
    assert (answer.code, "nowhere.yaml: the file cannot be read: No such file" in answer.line) == (2, True)
    fake_plugins.register(monkeypatch, fake_plugins.plugin("broken", "no_such_module:Adapter"))
    answer = call("compare", file(adapters=["broken"]))
    assert (answer.code, "adapter 'broken' is broken (fakes 1.0)" in answer.line) == (6, True)


# Data: the real workload, whose files are checked before any run starts.


def test_a_missing_data_file_is_one_line(call: Call, file: File, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    forbid_runs(monkeypatch)
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "t10k-labels-idx1-ubyte").write_bytes(b"")
    monkeypatch.setenv("TUNEOFF_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    answer = call("compare", file(workload={"name": "mnist_mlp", "options": {"dataset": "mnist"}}, adapters=["serial"]))
    assert answer.code == 4
    assert "train-images-idx3-ubyte.gz of mnist is missing; put it there" in answer.line


# The results folder.


def test_a_results_folder_that_cannot_be_made_is_one_line(call: Call, file: File, fakes: None) -> None:
    Path("taken").write_text("")
    answer = call("compare", file(), "--output", "taken/results")
    assert answer.code == 5
    assert "cannot be written: Not a directory; choose another --output" in answer.line


def test_a_full_results_folder_is_one_line(call: Call, file: File, fakes: None, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    answer = call("compare", file(), "--output", "results")
    assert answer.code == 5
    assert "No space left on device; free space or choose another --output" in answer.line


@pytest.fixture
def results(call: Call, file: File, fakes: None, tmp_path: Path) -> Path:
    """Return a results folder with the plan of the least experiment."""
    folder = tmp_path / "earlier"
    folder.mkdir()
    (folder / PLAN).write_text(call("plan", file(), "--json").out)
    return folder


@pytest.mark.parametrize("command", ["watch --runs", "export", "compare"])
@pytest.mark.parametrize(
    ("content", "part"), [('{"format_version": 99}', "format version 99"), ('{"format_ver', "end.json is damaged")]
)
def test_a_run_of_another_version_or_a_damaged_one_is_one_line(
    call: Call, file: File, results: Path, command: str, content: str, part: str
) -> None:
    folder = results / "runs" / "abc" / "abc-1"
    folder.mkdir(parents=True)
    (folder / "end.json").write_text(content)
    answer = call(
        *(["compare", file(), "--output", results, "--resume"] if command == "compare" else [*command.split(), results])
    )
    assert answer.code == 5
    assert part in answer.line


@pytest.mark.parametrize("command", ["watch --runs", "export", "report", "check --controls", "verify", "watch"])
def test_a_folder_without_results_is_one_line(call: Call, command: str, tmp_path: Path) -> None:
    answer = call(*command.split(), tmp_path)
    assert answer.code == 5
    assert "is not a results folder" in answer.line
    assert "give a results folder, e.g. one under results/" in answer.line
    answer = call(*command.split())
    assert answer.code == 5
    assert "there is no results folder under" in answer.line


@pytest.mark.parametrize("option", ["--resume", "--retry failed"])
def test_nothing_to_resume_is_one_line(call: Call, file: File, fakes: None, option: str) -> None:
    answer = call("compare", file(), *option.split())
    assert answer.code == 2
    assert "name it by --output, or leave out --resume" in answer.line
    Path("empty").mkdir()
    for command in ("compare", "run"):
        for folder, problem in (("results/nope", "is not there"), ("empty", "holds no plan")):
            answer = call(command, file(adapters=["plain"]), *option.split(), "--output", folder)
            assert answer.code == 2
            assert f"{folder} {problem}, so nothing can be resumed; correct it, or leave out --resume" in answer.line
        assert not Path("results/nope").exists()
        assert list(Path("empty").iterdir()) == []
