"""Nothing in a results folder acts: what is planted in it is not followed, waited for or told, by any reader or writer."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

import tuneoff
from builders.results_folders import Results
from hostile import attacks
from hostile.actors import ACTORS, UNDEPLOYS, WRITERS, Actor
from hostile.attacks import CUT, FOLLOWED, PLACES, PLANTS, UNDEPLOY_PLACES, Home, attacked, build, place_of
from tuneoff.cli.main import main
from tuneoff.errors import ResultsError
from tuneoff.record.events.reader import EventLog
from tuneoff.record.events.schema import StepEnded
from tuneoff.run.supervisor import execution


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Results:
    return build(tmp_path_factory.mktemp("built") / "results")


@pytest.fixture
def home(built: Results, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[1]))
    return Home.make(built, tmp_path)


Told = Callable[[], str]


@pytest.fixture
def told(capfd: pytest.CaptureFixture[str]) -> Told:
    return lambda: "".join(capfd.readouterr())


@pytest.mark.parametrize("plant", FOLLOWED)
@pytest.mark.parametrize("place", PLACES)
def test_nothing_is_written_through_what_is_planted(home: Home, place: str, plant: str, told: Told) -> None:
    PLANTS[plant](place_of(home.folder, place), home.mine)
    assert attacked(home, WRITERS, told).wrong == {}


@pytest.mark.slow
@pytest.mark.parametrize("plant", PLANTS)
@pytest.mark.parametrize("place", PLACES)
def test_nothing_that_is_planted_acts(home: Home, place: str, plant: str, told: Told) -> None:
    PLANTS[plant](place_of(home.folder, place), home.mine)
    actors = {name: act for name, act in ACTORS.items() if plant not in FOLLOWED or name not in WRITERS}  # these are fast
    assert attacked(home, actors, told).wrong == {}


def test_a_folder_in_which_nothing_is_planted_is_read_and_written(home: Home, told: Told) -> None:
    assert attacked(home, ACTORS, told) == ({}, {})


@pytest.mark.slow
@pytest.mark.parametrize("plant", PLANTS)
@pytest.mark.parametrize("place", UNDEPLOY_PLACES)
def test_nothing_that_is_planted_acts_on_an_undeploy(home: Home, place: str, plant: str, told: Told) -> None:
    PLANTS[plant](place_of(home.folder, place), home.mine)
    assert attacked(home, UNDEPLOYS, told).wrong == {}


@pytest.mark.slow
def test_the_undeploy_that_is_attacked_comes_to_its_end_where_nothing_is_planted(home: Home, told: Told) -> None:
    assert attacked(home, UNDEPLOYS, told) == ({}, {})
    cut = place_of(home.folder, f"runs/{CUT}")
    for events in (cut / "later" / "events", cut / "events"):
        (end,) = [one for _, one in EventLog(events) if isinstance(one, StepEnded) and one.step == "undeploy"]
        assert end.error is None


@pytest.mark.slow
@pytest.mark.parametrize(("place", "plant"), [("events", "to_my_folder"), ("later", "to_my_folder"), ("log.txt", "to_my_file")])
def test_a_careless_undeploy_is_caught(home: Home, place: str, plant: str, told: Told, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(execution, "_odd", lambda folder: None)
    monkeypatch.setattr(execution, "open_to_change", lambda path, flags: os.open(path, flags | os.O_CREAT))
    PLANTS[plant](place_of(home.folder, f"runs/{CUT}/{place}"), home.mine)
    assert any("it changed" in text for text in attacked(home, UNDEPLOYS, told).wrong.values())


COMMANDS = (
    *(["watch", "--runs"], ["watch", "--once"], ["report"], ["report", "--text"], ["export"], ["bundle", "--allow-unverified"]),
    *(["report", "--text", "--must-retry"], ["check", "--controls"], ["watch", "--serve", "--port", "0"]),
)
KEPT = [place for place in PLACES if ".tmp" not in place and not place.startswith(("report/", "export/"))]
BELOW = [place for place in KEPT if place.startswith(f"runs/{CUT}/") and place.count("/") > 2]  # checked where it is read


def _a_file(path: Path, mine: Path) -> None:
    PLANTS["a_folder"](path, mine)
    path.rmdir()
    path.write_text("x")


KINDS = {"to_my_copy": "a link", "a_pipe": "a pipe", "a_file": "a file"}


@pytest.mark.parametrize("plant", KINDS)
def test_no_reader_takes_a_folder_whose_runs_are_something_else_for_one_without_runs(home: Home, plant: str, told: Told) -> None:
    {**PLANTS, "a_file": _a_file}[plant](place_of(home.folder, "runs"), home.mine)
    ended = {" ".join(words): main([*words, str(home.folder.path)]) for words in COMMANDS}
    assert ended == dict.fromkeys(ended, 5)
    with pytest.raises(ResultsError, match=f"runs must be a folder, but is {KINDS[plant]}; put the folder itself there"):
        tuneoff.load(home.folder.path)


@pytest.mark.parametrize("place", [place for place in KEPT if place not in BELOW])
def test_whatever_stands_in_the_place_of_something_else_ends_a_command_with_5(home: Home, place: str, told: Told) -> None:
    path = place_of(home.folder, place)
    was = path.lstat().st_mode if os.path.lexists(path) else None
    for plant in ("to_my_file", "a_pipe", "a_folder" if was is None or stat.S_ISREG(was) else "a_file"):
        {**PLANTS, "a_file": _a_file}[plant](path, home.mine)
        if was is not None or plant != "a_folder":
            assert main(["watch", "--runs", str(home.folder.path)]) == 5, plant
            assert " must be a " in told() or place == "matrix.json"


def test_at_least_200_attacks_are_made_and_each_reader_and_writer_meets_some() -> None:
    assert len(PLACES) * len(FOLLOWED) * len(WRITERS) >= 200
    assert len(UNDEPLOY_PLACES) * len(PLANTS) * len(UNDEPLOYS) >= 200
    assert not UNDEPLOYS.keys() & ACTORS.keys()


def _appends(folder: Results, out: Path) -> bytes:
    with (folder.path / ".executions").open("a") as file:
        file.write("x")
    return b""


def _makes(folder: Results, out: Path) -> bytes:
    (folder.path / "report" / "new").mkdir(parents=True, exist_ok=True)
    return b""


def _removes(folder: Results, out: Path) -> bytes:
    for path in (folder.path / "report").iterdir():
        path.unlink()
    return b""


def _tells(folder: Results, out: Path) -> bytes:
    return (folder.path / "matrix.json").read_bytes()


def _packs(folder: Results, out: Path) -> bytes:
    (out / "b").write_bytes((folder.path / "matrix.json").read_bytes())
    return b""


def _prints(folder: Results, out: Path) -> bytes:
    print((folder.path / "matrix.json").read_text())
    return b""


def _breaks(folder: Results, out: Path) -> bytes:
    raise IsADirectoryError


def _says_too_much(folder: Results, out: Path) -> bytes:
    raise ResultsError("one line\nand another")


PLANTED: list[tuple[str, str, Actor, str]] = [
    (".executions", "to_my_file", _appends, "it changed ['secret.txt']"),
    (".executions", "to_nothing", _appends, "it changed ['new']"),
    (".executions", "a_second_name", _appends, "it changed ['linked-0']"),
    ("report", "to_my_folder", _makes, "it changed ['folder', 'folder/new']"),
    ("report/report.html", "a_pipe", lambda folder, out: (folder.path / "report/report.html").read_bytes(), "it took more than"),
    ("matrix.json", "to_my_file", _tells, "it told what is in a file of mine"),
    ("matrix.json", "to_my_file", _packs, "it told what is in a file of mine"),
    ("matrix.json", "to_my_file", _prints, "it told what is in a file of mine"),
    ("matrix.json", "a_pipe", _breaks, "IsADirectoryError"),
    ("matrix.json", "a_pipe", _says_too_much, "more than one line"),
    ("report", "to_my_folder", _removes, "it changed"),
]


@pytest.mark.parametrize(("place", "plant", "act", "problem"), PLANTED)
def test_a_careless_reader_or_writer_is_caught(
    home: Home, place: str, plant: str, act: Actor, problem: str, told: Told, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(attacks, "MOST_SECONDS", 1)
    (home.mine / "folder" / "deep").rmdir()
    PLANTS[plant](place_of(home.folder, place), home.mine)
    assert problem in attacked(home, {"careless": act}, told).wrong["careless"]
