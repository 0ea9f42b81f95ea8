"""What runs print, on the page: by run, log and trial, with search, in parts, as text, and nothing from outside the folder."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from builders.live_folders import Folder
from tuneoff.record.events import schema
from tuneoff.run.supervisor.logs import shorten
from tuneoff.tell.live import output
from tuneoff.tell.live.site import Site
from tuneoff.tell.live.watcher import Watcher

HOSTILE = b"<script>alert(1)</script>\x1b[2J\xff\x00\xe2\x80\xae\n"


class Asked:
    """A folder with a run that has ended and one under way, and what its page is answered."""

    def __init__(self, path: Path) -> None:
        self.folder = Folder(path / "results")
        self.folder.take()
        self.ended = self.folder.end("serial", 0)
        self.running = self.folder.begin("optuna", 0)
        self.running.write()
        self.log = self.running.folder / "log.txt"
        self.log.touch()
        self.key = "/".join(self.log.parts[-3:-1])
        self.site = Site(Watcher(self.folder.path), lambda folder: "")

    def __call__(self, **query: object) -> Any:
        answer = self.site.answer("/output.json", urlencode(query))
        return json.loads(answer.body) if answer.status == 200 else (int(answer.status), answer.body.decode())

    def lines(self, log: str = "log.txt", begin: int | None = None, **query: object) -> Any:
        place = {} if begin is None else {"from": begin}
        return self(execution=self.key, log=log, **query, **place)["lines"]


@pytest.fixture
def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Asked:
    monkeypatch.setattr("tuneoff.tell.live.site.LOOK_EVERY_SECONDS", 0.0)
    return Asked(tmp_path)


def test_the_run_that_is_under_way_comes_first_and_its_lines_as_they_come(asked: Asked) -> None:
    first, second = asked()["executions"]
    assert first == [asked.key, "optuna random seed 0, not ended"]
    assert second[1] == "serial random seed 0, done"
    asked.log.write_bytes(b"one\ntw")
    answer = asked(execution=asked.key, log="log.txt")
    assert (answer["lines"], answer["next"], answer["size"]) == (["one"], 4, 6)
    with asked.log.open("ab") as file:
        file.write(b"o\nbar 1 %\rbar 2 %\r\n")
    assert asked.lines(begin=4) == ["two", "bar 2 %"]


def test_a_run_that_has_ended_gives_its_last_line_too(asked: Asked) -> None:
    folder = asked.ended.parent if asked.ended.is_file() else asked.ended
    (folder / "log.txt").write_bytes(b"one\nlast")
    answer = asked(execution="/".join(folder.parts[-2:]), log="log.txt")
    assert answer["lines"] == ["one", "last"]


def test_a_trial_has_what_was_printed_while_it_ran(asked: Asked) -> None:
    asked.log.write_bytes(b"before\nof the trial\nafter\n")
    writer = asked.running.log.coordinator
    writer.start("t0", 1.0, slot=0)
    writer.add(schema.TrialEnded, 2.0, trial="t0", state="completed", epochs=1, printed=(7, 20))
    asked.running.write()
    assert asked(execution=asked.key)["logs"] == ["log.txt", "trial t0"]
    assert asked.lines("trial t0") == ["of the trial"]
    assert asked.lines("trial t0", find="before") == []
    assert asked.lines("trial t0", begin=0) == ["of the trial"]


def test_of_a_log_whose_middle_was_left_out_only_trials_before_that_are_listed(asked: Asked) -> None:
    writer = asked.running.log.coordinator
    for number, printed in enumerate([(0, 6), (2_000_000, 2_000_100)]):
        writer.start(f"t{number}", 1.0, slot=0)
        writer.add(schema.TrialEnded, 2.0, trial=f"t{number}", state="completed", epochs=1, printed=printed)
    asked.running.write()
    asked.log.write_bytes(b"first\n" + 2_000_000 * b"many\n")
    assert asked(execution=asked.key)["logs"] == ["log.txt", "trial t0", "trial t1"]
    assert shorten(asked.log) > 0
    assert asked(execution=asked.key)["logs"] == ["log.txt", "trial t0"]
    assert asked.lines("trial t0") == ["first"]


def test_the_logs_of_a_framework_are_listed(asked: Asked) -> None:
    trial = asked.running.folder / "framework" / "tuner" / "7"
    trial.mkdir(parents=True)
    (trial / "std.err").write_bytes(b"of trial 7\n")
    (trial / "model.bin").write_bytes(b"none")
    assert asked(execution=asked.key)["logs"] == ["log.txt", "framework/tuner/7/std.err"]
    assert asked.lines("framework/tuner/7/std.err") == ["of trial 7"]


@pytest.mark.parametrize("file", ["tuner/7/std.err", "pods/7.log"])
def test_a_frameworks_log_of_a_trial_has_the_trials_name(asked: Asked, file: str) -> None:
    path = asked.running.folder / "framework" / file
    path.parent.mkdir(parents=True)
    path.write_bytes(b"said\n")
    (asked.running.folder / "framework" / "17.log").touch()
    started = {"configuration": {}, "digest": "", "slot": 0, "seed": 0, "threads": 1, "framework_id": "7", "attempt": 2}
    asked.running.log.coordinator.add(schema.TrialStarted, 1.0, trial="t3", **started)
    asked.running.write()
    name = f"trial t3, attempt 2: framework/{file}"
    assert sorted(asked(execution=asked.key)["logs"]) == ["framework/17.log", "log.txt", name]
    assert asked.lines(name) == ["said"]


def test_of_a_large_log_a_part_is_read_at_a_time_and_search_goes_through_all(
    asked: Asked, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(output, "BLOCK", 100)
    monkeypatch.setattr(output, "SEARCHED", 300)
    written = [f"line {number} {'needle' if number % 50 == 0 else 'straw'}" for number in range(200)]
    asked.log.write_text("".join(f"{line}\n" for line in written))
    tail = asked.lines()
    assert 0 < len(tail) < 10
    assert tail == written[-len(tail) :]  # whole lines
    found, place, answers = list[str](), 0, 0
    while (answer := asked(execution=asked.key, log="log.txt", find="NEEDLE", **{"from": place}))["next"] > place:
        found, place, answers = [*found, *answer["lines"]], answer["next"], answers + 1
    assert found == [line for line in written if "needle" in line]
    assert answers > 5


def test_a_log_with_a_hole_and_a_line_without_end_takes_no_memory(asked: Asked) -> None:
    with asked.log.open("wb") as file:
        file.write(b"begin\n")
        file.seek(1 << 40)
        file.write(b"x" * 3 * output.BLOCK + b"\nend\n")
    assert asked.lines()[-1] == "end"
    assert asked.lines(find="begin", begin=0) == ["begin"]
    (long,) = asked.lines(begin=1 << 40)
    assert len(long) == output.LONGEST_LINE + 1


def test_hostile_output_is_text_that_shows_what_it_has(asked: Asked) -> None:
    asked.log.write_bytes(HOSTILE)
    assert asked.lines() == ["<script>alert(1)</script>\\x1b[2J\ufffd\\u202e"]
    assert asked.lines(find="[2j") == asked.lines()


@pytest.mark.parametrize(
    "query",
    [
        {"execution": "../.."},
        {"execution": "/etc"},
        {"execution": ""},
        {"log": "../../../secret.txt"},
        {"log": "/etc/passwd"},
        {"log": "framework/link.txt"},
        {"log": "framework/folder/secret.txt"},
        {"log": "framework/../../../../secret.txt"},
        {"log": "run.json"},
        {"log": ""},
        {"log": "log.txt", "from": "-1"},
        {"log": "log.txt", "from": "1e3"},
        {"log": "log.txt", "from": "²"},
    ],
)
def test_nothing_outside_and_nothing_that_is_no_log_is_read(asked: Asked, tmp_path: Path, query: dict[str, str]) -> None:
    (tmp_path / "secret.txt").write_text("a secret")
    framework = asked.running.folder / "framework"
    framework.mkdir()
    (framework / "link.txt").symlink_to(tmp_path / "secret.txt")
    (framework / "folder").symlink_to(tmp_path)
    status, text = asked(**{"execution": asked.key, **query})
    assert status in (404, 503)
    assert "a secret" not in text
    assert text.count("\n") == 1


def test_a_log_that_has_become_a_link_is_not_read(asked: Asked, tmp_path: Path) -> None:
    (tmp_path / "secret.txt").write_text("a secret")
    asked.log.unlink()
    asked.log.symlink_to(tmp_path / "secret.txt")
    status, text = asked(execution=asked.key, log="log.txt")
    assert (status, "link" in text, "a secret" in text) == (503, True, False)


def test_too_many_fields_are_refused_in_a_line(asked: Asked) -> None:
    answer = asked.site.answer("/output.json", "&".join(["a=1"] * 99))
    assert (answer.status, answer.body.count(b"\n")) == (400, 1)
