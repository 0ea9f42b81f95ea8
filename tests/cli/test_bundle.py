"""`tuneoff bundle` and `tuneoff reproduce`: what they print, and one line for everything that is wrong."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from builders.bundles import in_records, repacked
from builders.results_folders import Results, edit
from command_line import Call


@pytest.fixture
def bundle(call: Call, results: Results) -> Path:
    assert call("bundle", results.path).code == 0
    return results.path.with_name("mine.tar.gz")


def test_a_bundle_lies_beside_its_folder_and_its_digest_is_printed(call: Call, results: Results) -> None:
    answer = call("bundle")
    first, last = answer.out.splitlines()
    assert answer.code == 0
    assert first.startswith("bundled ")
    assert last.startswith(str(results.path.with_name("mine.tar.gz")))
    assert answer.err.endswith("nothing is missing\n")
    again = json.loads(call("bundle", results.path, "--json", "--output", "other.tar.gz").out)
    assert again["sha256"] in first
    assert (again["verified"], again["missing"], Path(again["bundle"]).name) == (True, [], "other.tar.gz")


def test_a_folder_that_is_not_verified_is_one_line_and_exit_code_1(call: Call, results: Results) -> None:
    path = results.folder(results.plan.runs[0].spec) / "run.json"
    edit(path, lambda text: text.replace('"value":176000.0', '"value":175000.0', 1))
    answer = call("bundle", results.path)
    assert answer.code == 1
    assert "is not verified: " in answer.line
    assert answer.line.endswith("see tuneoff verify, or add --allow-unverified")
    answer = call("bundle", results.path, "--allow-unverified")
    assert answer.code == 0
    assert "NOT VERIFIED, and the bundle says so: " in answer.err


def test_the_plan_of_a_reproduction_shows_both_sides_and_starts_nothing(call: Call, fakes: None, bundle: Path) -> None:
    del fakes  # of which no run may start
    answer = call("reproduce", bundle, "--plan", "--adapter", "serial")
    assert answer.code == 2
    assert "no adapter named 'serial'" in answer.line


def test_what_is_wrong_with_a_bundle_is_one_line(call: Call, bundle: Path, tmp_path: Path) -> None:
    whole = bundle.read_bytes()
    (tmp_path / "cut.tar.gz").write_bytes(whole[: len(whole) // 2])
    repacked(bundle, tmp_path / "bare.tar.gz", lambda folder: (folder / "results" / "matrix.json").unlink())
    for name, text in (
        ("cut.tar.gz", "is truncated"),
        ("bare.tar.gz", "bare.tar.gz: results is not a results folder"),
        ("none.tar.gz", "cannot be read: No such file or directory"),
    ):
        answer = call("reproduce", tmp_path / name)
        assert answer.code == 5, name
        assert text in answer.line, name


def test_wrong_arguments_are_one_line(call: Call, bundle: Path) -> None:
    for arguments, text in (
        (["--runs", "0"], "must be a whole number from 1, but got '0'"),
        (["--seed", "-1"], "must be a whole number from 0"),
        (["--seed", "x"], "must be a whole number from 0"),
        (["--runs", "2", "--all"], "not allowed with"),
        (["--limit-mb", "0"], "must be a whole number from 1"),
        (["--adapter", "other"], "has no run of adapter 'other' that is done; it has: optuna, serial"),
    ):
        answer = call("reproduce", bundle, *arguments)
        assert answer.code == 2
        assert text in answer.line


def test_a_bundle_above_the_limit_is_one_line(call: Call, bundle: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tuneoff.cli.reproduce.MEGABYTE", 0)
    answer = call("reproduce", bundle)
    assert answer.code == 5
    assert "but the limit is 0 MB; raise it by --limit-mb" in answer.line


def test_names_cannot_steer_a_terminal(call: Call, bundle: Path, tmp_path: Path) -> None:
    planted = repacked(
        bundle, tmp_path / "odd.tar.gz", in_records(lambda record: record["environment"].update(python="3\x1b[2J"))
    )
    answer = call("reproduce", planted, "--plan", "--adapter", "serial")
    assert answer.code == 0
    assert "3\\x1b[2J" in answer.out
    assert "\x1b" not in answer.out
