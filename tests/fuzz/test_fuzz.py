"""Fuzzed experiment files, results folders and bundles: each is answered by one line and a documented exit code.

Hypothesis makes the cases and finds the smallest that fails, whose files stay in `case` in the test's temporary folder. Each call
is a guarded child: at most 10 s and 1 GB, nothing written outside its folder, no stranger killed, no network. `make fuzz` makes
many cases and prints what they met.
Controls: a `verify` or `reproduce` that says the wrong word is noticed, and so is what a bundle that may act does.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import json
import multiprocessing
import os
import random
import shutil
import socket
import sys
import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from builders.bundles import packed
from fuzz import archive_cases, file_cases, folder_cases, hostile_cases, oracle
from fuzz.sandbox import Main, Place
from fuzz.sources import RESULTS, make_sources
from fuzz.touched import touched
from tuneoff.cli.main import main

pytestmark = pytest.mark.slow

Ask = Callable[[Place, random.Random], list[str]]


def hold(ask: Ask, folder: Path, request: pytest.FixtureRequest, few: int, many: int) -> None:
    """Make cases: `few`, or as many as asked for, 0 for `many`; the first that is answered badly fails."""
    asked = request.config.getoption("--count", None)
    count = few if asked is None else asked or many
    oracle.SEEN.clear()

    @settings(
        max_examples=count,
        derandomize=asked is None,
        print_blob=True,
        phases=(Phase.explicit, Phase.reuse, Phase.generate, *([] if asked is None else [Phase.shrink])),
        suppress_health_check=list(HealthCheck),
    )
    @given(st.randoms(use_true_random=False))
    def is_answered(chance: random.Random) -> None:
        with Place.of_case(folder / "case") as place:
            assert ask(place, chance) == []

    is_answered()
    print(*(f"{number} {what}" for what, number in sorted(oracle.SEEN.items())), sep="\n")
    assert sum(number for what, number in oracle.SEEN.items() if "exit code" in what) >= count


@pytest.fixture(scope="module")
def imported() -> None:
    """Import what the cases need, once: each is a fork of this process."""
    with contextlib.redirect_stdout(io.StringIO()):
        for file in ("digits", "S-Pruner"):
            main(["plan", file])
    reports = ("judge.groups", "tell.frames.export", "tell.report.tables", "tell.report.declared")
    for module in (*reports, "run.execute", "trust.verify.results", "trust.bundle.pack", "trust.bundle.reproduce"):
        importlib.import_module(f"tuneoff.{module}")


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Path:
    """Return a folder of results, of which no run has to be made where few cases are asked for."""
    folder = tmp_path_factory.mktemp("fuzz") / "sources"
    make_sources(folder, small=request.config.getoption("--count", None) is None)
    return folder


@pytest.fixture(scope="module")
def bundle(sources: Path) -> Path:
    path = sources.parent / archive_cases.ARCHIVE
    packed(sources / "examples" / RESULTS, path)
    return path


@pytest.mark.usefixtures("imported")
def test_fuzzed_files_are_answered(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    hold(file_cases.ask, tmp_path, request, 60, 10_000)


@pytest.mark.usefixtures("imported")
def test_damaged_folders_are_answered(sources: Path, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    hold(partial(folder_cases.ask, sources), tmp_path, request, 12, 2000)


@pytest.mark.usefixtures("imported")
def test_damaged_bundles_are_answered(bundle: Path, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    hold(partial(archive_cases.ask, bundle), tmp_path, request, 40, 1000)


@pytest.mark.usefixtures("imported")
def test_hostile_bundles_are_answered_and_nothing_of_them_acts(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    hold(hostile_cases.ask, tmp_path, request, 25, 300)


def _connecting(argv: Sequence[str]) -> int:
    socket.socket().connect(("127.0.0.1", hostile_cases.PORT))
    return 0


def _reading(argv: Sequence[str]) -> int:
    Path("kc").read_bytes()
    return 0


def _importing(argv: Sequence[str]) -> int:
    sys.path.append(os.getcwd())
    importlib.import_module("evil")
    return 0


def _spawning(argv: Sequence[str]) -> int:
    multiprocessing.get_context("spawn").Process(target=print).start()
    return 0


@pytest.mark.usefixtures("imported")
@pytest.mark.parametrize(
    ("main", "breach"),
    [
        (None, "starts a process: subprocess.Popen"),
        (_spawning, "starts a process: "),
        (_connecting, "connects to"),
        (_reading, "reads 'kc'"),
        (_importing, "kept/mine/owned'"),
    ],
)
def test_what_a_bundle_that_may_act_does_is_seen(tmp_path: Path, main: Main | None, breach: str) -> None:
    with Place.of_case(tmp_path / "case") as place:
        found = hostile_cases.ask(place, random.Random(0), main, parts=())
    assert any(breach in failure for failure in found), found


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


def _answers(ask: Callable[..., list[str]], source: Path, folder: Path, seed: int, main: Main) -> list[str]:
    with Place.of_case(folder / "case") as place:
        return [failure for failure in ask(source, place, random.Random(seed), main) if "memory" not in failure]


def _noticed(ask: Callable[..., list[str]], source: Path, folder: Path, main: Main, most: int, *texts: str) -> bool:
    """Tell whether each of these texts is in what is wrong with a case; at most so many are made, and no more than it takes."""
    left = set(texts)
    for seed in range(most):
        left -= {text for failure in _answers(ask, source, folder, seed, main) for text in left if text in failure}
        if not left:
            return True
    return False


def test_a_reproduce_that_accepts_all_leaves_a_folder_or_fails_is_noticed(bundle: Path, tmp_path: Path) -> None:
    planted = {_accepting: ("accepted, but", "verified, but changed were"), _leaving: ("its temporary folder",)}
    for said, expected in {**planted, _failing: ("traceback: ValueError",)}.items():
        assert _noticed(archive_cases.ask, bundle, tmp_path, said, 14, *expected), expected


def _verify_that_says(word: str, code: int) -> Main:
    def main(argv: Sequence[str]) -> int:
        if argv[0] == "verify":
            sys.stdout.write(f'{{"verified": {str(not code).lower()}}}' if "--json" in argv else f"{word}: 1 run\n")
            return code
        sys.stdout.write("{}\n")
        return 0

    return main


class _Undamaged(random.Random):
    """Draws what leaves a folder as it was."""

    def random(self) -> float:
        return 0.0


def test_a_verify_that_always_says_verified_is_noticed(sources: Path, tmp_path: Path) -> None:
    said = _verify_that_says("VERIFIED", 0)
    assert _noticed(folder_cases.ask, sources, tmp_path, said, 8, "VERIFIED, but changed were: ")


@pytest.mark.parametrize(
    ("word", "code", "failure", "count"),
    [
        ("NOT VERIFIED", 1, "an undamaged folder is not VERIFIED", 2),
        ("VERIFIED", 1, "exit code 1, but its word is VERIFIED", 1),
    ],
)
def test_a_verify_that_is_wrong_about_an_undamaged_folder_is_noticed(
    sources: Path, tmp_path: Path, word: str, code: int, failure: str, count: int
) -> None:
    with Place.of_case(tmp_path / "case") as place:
        found = folder_cases.ask(sources, place, _Undamaged(0), _verify_that_says(word, code))
    assert [failure in one for one in found if "memory" not in one].count(True) == count


def test_touched_names_raw_and_derived_files_and_leaves_out_what_is_stated(sources: Path, tmp_path: Path) -> None:
    original, damaged = sources / "examples" / RESULTS, tmp_path / "results"
    shutil.copytree(original, damaged)
    assert touched(original, damaged) == []
    folder = next(damaged.glob("runs/*/*/end.json")).parent
    (folder / "run.json").write_text("a cache that nobody reads")
    (folder / "log.txt").write_text("nobody answers for it")
    assert touched(original, damaged) == []
    end = folder / "end.json"
    data = json.loads(end.read_text())
    data["environment"]["host"] = "another"
    end.write_text(json.dumps(data, indent=3))
    assert touched(original, damaged) == []
    data["emulated"] = True
    end.write_text(json.dumps(data))
    (folder / "power.jsonl").unlink()
    names = [name.rpartition("/")[2] for name in touched(original, damaged)]
    assert names == ["end.json", "power.jsonl"]
