"""Bundles whose answer, page or records somebody changed, and who then wrote a manifest that fits: each change is named."""

from __future__ import annotations

import json
import subprocess
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from builders.bundles import packed, repacked
from builders.results_folders import write_examples
from command_line import Call
from tuneoff.trust.official import ANSWER, OFFICIAL, PAGE, TEXT, official

Change = Callable[[Path], None]


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    return packed(write_examples(tmp_path / "results").path, tmp_path / "b.tar.gz").path


def edited(name: str, old: str, new: str) -> Change:
    def change(folder: Path) -> None:
        path = next(folder.glob(name))
        text = path.read_text()
        assert old in text, text
        path.write_text(text.replace(old, new, 1))

    return change


def forged(folder: Path) -> None:
    """Change an answer that says that another tuneoff made it."""
    answer = json.loads((folder / ANSWER).read_text())
    answer["follows_from"]["code"] = "0" * 64
    answer["confidence"] = 0.5
    (folder / ANSWER).write_text(f"{json.dumps(answer, indent=1)}\n")


def removed(*names: str) -> Change:
    def change(folder: Path) -> None:
        for name in names:
            (folder / name).unlink()

    return change


CHANGES: dict[str, tuple[Change, str]] = {
    "an answer": (
        edited(ANSWER, '\n "confidence": 0.95', '\n "confidence": 0.5'),
        "answer.json: confidence: stored 0.5, recomputed 0.95",
    ),
    "the text": (edited(TEXT, "95 %", "99 %"), "answer.txt: line "),
    "a figure on the page": (edited(PAGE, "176", "175"), "report.html: line "),
    "a record": (
        edited("results/runs/*/*/end.json", '"framework": "none"', '"framework": "other"'),
        "answer.json: follows_from.records: it follows from ",
    ),
    "a key twice": (
        edited(ANSWER, '\n "confidence"', '\n "confidence": 0.5,\n "confidence"'),
        "answer.json: is not as tuneoff writes it",
    ),
    "no mark": (edited(ANSWER, '"follows_from"', '"follows"'), "answer.json: follows_from: cannot be read"),
    "no page": (removed(PAGE), "report.html: cannot be read: No such file or directory"),
}


@pytest.mark.parametrize("what", CHANGES)
def test_a_change_is_found_and_named(call: Call, bundle: Path, tmp_path: Path, what: str) -> None:
    change, text = CHANGES[what]
    changed = repacked(bundle, tmp_path / "changed.tar.gz", change)
    answer = call("verify", changed)
    assert answer.code == 1, answer
    assert text in answer.out
    again = call("reproduce", changed, "--plan")
    assert "not verified (" in again.out
    assert text[:25] in again.out


def test_an_untouched_one_is_verified_and_its_files_are_the_same_everywhere(call: Call, bundle: Path, tmp_path: Path) -> None:
    assert call("verify", bundle).code == 0
    folder = tmp_path / "elsewhere"
    with tarfile.open(bundle) as archive:
        archive.extractall(tmp_path, filter="data")
    (top,) = (path.parent for path in tmp_path.glob("*/manifest.json"))
    top.rename(folder)
    assert call("verify", folder / "results").code == 0
    names = "from pathlib import Path; from tuneoff.trust.official import official"
    code = f"{names}\nfor name, text in official(Path('results')).items(): Path('../anew-' + name).write_bytes(text)"
    subprocess.run([sys.executable, "-c", code], cwd=folder, check=True, env={"PYTHONHASHSEED": "7", "COLUMNS": "40"})
    for name in OFFICIAL:
        assert (tmp_path / f"anew-{name}").read_bytes() == (folder / name).read_bytes() == official(tmp_path / "results")[name]
        assert str(tmp_path) not in (folder / name).read_text()


def test_what_another_tuneoff_would_say_is_no_defect_and_no_proof(call: Call, bundle: Path, tmp_path: Path) -> None:
    changed = repacked(bundle, tmp_path / "changed.tar.gz", forged)
    answer = call("verify", changed)
    assert answer.code == 7
    assert "NOT KNOWN: another tuneoff made the answer (tuneoff 0.1.0, code 000000000000)" in answer.out
    assert "the first of 3 differences: ../answer.json: confidence: stored 0.5, recomputed 0.95" in answer.out
    assert "another tuneoff made the answer" in call("reproduce", changed, "--plan").out


def test_of_a_bundle_without_an_answer_it_is_not_known_who_removed_it(call: Call, bundle: Path, tmp_path: Path) -> None:
    old = repacked(bundle, tmp_path / "old.tar.gz", removed(*OFFICIAL))
    answer = call("verify", old)
    assert (answer.code, "NOT KNOWN: the bundle has no answer and no page" in answer.out) == (7, True)
    assert "the bundle has no answer and no page" in call("reproduce", old, "--plan").out
