"""A small count of what `make fuzz` does, and controls: a `verify` that says the wrong word is noticed."""

from __future__ import annotations

import json
import os
import random
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import pytest

from builders.bundles import packed
from fuzz import archive_cases, fuzz_bundles, fuzz_files, fuzz_results
from fuzz.engine import Task, in_place
from fuzz.folder_cases import ask_all
from fuzz.sandbox import Main
from fuzz.sources import RESULTS, make_sources
from fuzz.touched import touched

FILES, FOLDERS, BUNDLES = 100, 12, 60  # of the 10 000, the 2 000 and the 1 000 that `make fuzz` does


@pytest.mark.slow
def test_fuzzed_files_are_answered(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = fuzz_files.main(["--count", str(FILES), "--first", "100000", "--keep", str(tmp_path / "kept")])
    out = capsys.readouterr().out
    assert code == 0, out
    assert f"{FILES} cases, {FILES} calls, 0 failed" in out


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder of results that no run had to make."""
    folder = tmp_path_factory.mktemp("fuzz") / "sources"
    make_sources(folder, small=True)
    return folder


@pytest.mark.slow
def test_damaged_folders_are_answered(sources: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--count", str(FOLDERS), "--first", "100000", "--small", "--sources", str(sources)]
    code = fuzz_results.main([*arguments, "--keep", str(tmp_path / "kept")])
    out = capsys.readouterr().out
    assert code == 0, out
    assert f"{FOLDERS} cases" in out


@pytest.mark.slow
def test_damaged_bundles_are_answered(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = fuzz_bundles.main(["--count", str(BUNDLES), "--first", "100000", "--keep", str(tmp_path / "kept")])
    out = capsys.readouterr().out
    assert code == 0, out
    assert f"{BUNDLES} cases, {BUNDLES} calls, 0 failed" in out


def _accepting(argv: Sequence[str]) -> int:
    """Accept every bundle as a verified one."""
    sys.stdout.write("verification of the bundle  verified  verified  same\n")
    return 0


def _leaving(argv: Sequence[str]) -> int:
    """Refuse every bundle, and leave what was unpacked."""
    tempfile.mkdtemp(prefix="tuneoff-bundle-", dir=os.environ["TMPDIR"])
    sys.stderr.write("tuneoff: no\n")
    return 5


def _failing(argv: Sequence[str]) -> int:
    raise ValueError("invalid literal")


def _of_bundle(sources: Path, folder: Path, index: int, main: Main) -> list[str]:
    task = Task(seed=0, index=index, folder=folder, keep=False, sources=sources)
    return in_place(task, lambda place, chance: archive_cases.ask(task, place, chance, main)).failures


@pytest.mark.slow
def test_a_reproduce_that_accepts_all_leaves_a_folder_or_fails_is_noticed(sources: Path, tmp_path: Path) -> None:
    folder = tmp_path / "bundle"
    folder.mkdir()
    packed(sources / "examples" / RESULTS, folder / archive_cases.ARCHIVE)
    planted = {_accepting: ("accepted, but", "verified, but changed were"), _leaving: ("its temporary folder",)}
    for main, expected in {**planted, _failing: ("traceback: ValueError",)}.items():
        found = [failure for index in range(14) for failure in _of_bundle(folder, tmp_path / "case", index, main)]
        assert all(any(text in failure for failure in found) for text in expected), found


def _verify_that_says(word: str, code: int) -> Main:
    def main(argv: Sequence[str]) -> int:
        if argv[0] == "verify":
            sys.stdout.write(f'{{"verified": {str(not code).lower()}}}' if "--json" in argv else f"{word}: 1 run\n")
            return code
        sys.stdout.write("{}\n")
        return 0

    return main


def _failures(sources: Path, folder: Path, index: int, main: Main) -> tuple[str, list[str]]:
    task = Task(seed=0, index=index, folder=folder, keep=False, sources=sources)
    report = in_place(task, lambda place, chance: ask_all(task, place, chance, main))
    return report.what, [failure for failure in report.failures if "memory" not in failure]


def _index(is_damaged: bool) -> int:
    """Return the first case that damages its folder, or that does not."""
    for index in range(1000):
        chance = random.Random(f"0:{index}")
        chance.choice([0])  # the source
        if (chance.random() >= 0.04) == is_damaged:
            return index
    raise AssertionError


@pytest.mark.slow
def test_a_verify_that_always_says_verified_is_noticed(sources: Path, tmp_path: Path) -> None:
    found = [_failures(sources, tmp_path / "case", index, _verify_that_says("VERIFIED", 0)) for index in range(8)]
    assert any("VERIFIED, but changed were: " in failure for _, failures in found for failure in failures)


def test_a_verify_that_never_says_verified_is_noticed(sources: Path, tmp_path: Path) -> None:
    what, failures = _failures(sources, tmp_path / "case", _index(False), _verify_that_says("NOT VERIFIED", 1))
    assert what == "examples: nothing"
    assert all("an undamaged folder is not VERIFIED" in failure for failure in failures)
    assert len(failures) == 2


def test_a_verify_whose_word_is_not_its_exit_code_is_noticed(sources: Path, tmp_path: Path) -> None:
    _, failures = _failures(sources, tmp_path / "case", _index(False), _verify_that_says("VERIFIED", 1))
    assert any("exit code 1, but its word is VERIFIED" in failure for failure in failures)


def test_touched_names_raw_and_derived_files_and_leaves_out_what_is_stated(sources: Path, tmp_path: Path) -> None:
    original, damaged = sources / "examples" / RESULTS, tmp_path / "results"
    shutil.copytree(original, damaged)
    assert touched(original, damaged) == []
    record = next(damaged.glob("runs/*/*/run.json"))
    data = json.loads(record.read_text())
    data["environment"]["host"] = "another"
    record.write_text(json.dumps(data, indent=3))
    (record.parent / "log.txt").write_text("nobody answers for it")
    assert touched(original, damaged) == []
    data["torn_lines"] = 1
    record.write_text(json.dumps(data))
    (record.parent / "power.jsonl").unlink()
    names = [name.rpartition("/")[2] for name in touched(original, damaged)]
    assert names == ["power.jsonl", "run.json"]
