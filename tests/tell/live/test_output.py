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


class Asked:
    """A folder with a run that has ended and one under way, and what its page is answered."""

    def __init__(self, path: Path) -> None:
        self.folder = Folder(path / "results")
        self.folder.take()
        self.ended = self.folder.end("serial", 0).parent
        self.running = self.folder.begin("optuna", 0)
        self.running.write()
        self.log = self.running.folder / "log.txt"
        self.log.touch()
        self.key = "/".join(self.log.parts[-3:-1])
        self.site = Site(Watcher(self.folder.path), lambda folder: "")

    def __call__(self, **query: object) -> Any:
        answer = self.site.answer("/output.json", urlencode({name.rstrip("_"): value for name, value in query.items()}))
        return json.loads(answer.body) if answer.status == 200 else (int(answer.status), answer.body.decode())

    def lines(self, log: str = "log.txt", **query: object) -> Any:
        return self(execution=self.key, log=log, **query)["lines"]

    def trial(self, name: str, printed: tuple[int, int] | None, **started: Any) -> None:
        writer = self.running.log.coordinator
        values = {"configuration": {}, "digest": "", "slot": 0, "seed": 0, "threads": 1, **started}
        writer.add(schema.TrialStarted, 1.0, trial=name, **values)
        if printed is not None:
            writer.add(schema.TrialEnded, 2.0, trial=name, state="completed", epochs=1, printed=printed)
        self.running.write()


@pytest.fixture
def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Asked:
    monkeypatch.setattr("tuneoff.tell.live.site.LOOK_EVERY_SECONDS", 0.0)
    return Asked(tmp_path)


def test_the_run_under_way_comes_first_with_lines_as_they_come_and_one_that_ended_has_its_last_too(asked: Asked) -> None:
    first, second = asked()["executions"]
    assert (first, second[1]) == ([asked.key, "optuna random seed 0, not ended"], "serial random seed 0, done")
    asked.log.write_bytes(b"one\ntw")
    assert asked(execution=asked.key, log="log.txt") == {"lines": ["one"], "next": 4, "size": 6}
    with asked.log.open("ab") as file:
        file.write(b"o\nbar 1 %\rbar 2 %\r\n")
    assert asked.lines(from_=4) == ["two", "bar 2 %"]
    (asked.ended / "log.txt").write_bytes(b"one\nlast")
    assert asked(execution="/".join(asked.ended.parts[-2:]), log="log.txt")["lines"] == ["one", "last"]


def test_a_trial_has_what_was_printed_while_it_ran_where_the_log_still_has_it(asked: Asked) -> None:
    asked.log.write_bytes(b"before\nof the trial\nafter\n" + 2_000_000 * b"many\n")
    asked.trial("t0", (7, 20))
    asked.trial("t1", (2_000_000, 2_000_100))
    assert asked(execution=asked.key)["logs"] == ["log.txt", "trial t0", "trial t1"]
    assert asked.lines("trial t0") == asked.lines("trial t0", from_=0) == ["of the trial"]
    assert asked.lines("trial t0", find="before") == []
    assert shorten(asked.log) > 0  # its middle is left out
    assert asked(execution=asked.key)["logs"] == ["log.txt", "trial t0"]
    assert asked.lines("trial t0") == ["of the trial"]


def test_logs_of_a_framework_are_listed_with_the_names_of_the_trials_that_they_are_of(asked: Asked) -> None:
    files = ("tuner/7/std.err", "pods/7.log", "17.log", "tuner/7/model.bin")
    for path in (asked.running.folder / "framework" / file for file in files):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"said\n")
    asked.trial("t3", None, framework_id="7", attempt=2)
    names = [f"trial t3, attempt 2: framework/{file}" for file in files[:2]]
    assert sorted(asked(execution=asked.key)["logs"]) == sorted(["framework/17.log", "log.txt", *names])
    assert [asked.lines(name) for name in (*names, "framework/17.log")] == [["said"]] * 3


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
    while (answer := asked(execution=asked.key, log="log.txt", find="NEEDLE", from_=place))["next"] > place:
        found, place, answers = [*found, *answer["lines"]], answer["next"], answers + 1
    assert found == [line for line in written if "needle" in line]
    assert answers > 5


def test_a_log_with_a_hole_and_a_line_without_end_takes_no_memory_and_hostile_output_is_text(asked: Asked) -> None:
    with asked.log.open("wb") as file:
        file.write(b"begin\n")
        file.seek(1 << 40)
        file.write(b"x" * 3 * output.BLOCK + b"\nend\n")
    assert asked.lines()[-1] == "end"
    assert asked.lines(find="begin", from_=0) == ["begin"]
    (long,) = asked.lines(from_=1 << 40)
    assert len(long) == output.LONGEST_LINE + 1
    asked.log.write_bytes(b"<script>alert(1)</script>\x1b[2J\xff\x00\xe2\x80\xae\n")
    assert asked.lines() == asked.lines(find="[2j") == ["<script>alert(1)</script>\\x1b[2J\ufffd\\u202e"]


@pytest.mark.parametrize(
    "query",
    [
        *({"execution": execution} for execution in ("../..", "/etc", "")),
        *({"log": f"{prefix}secret.txt"} for prefix in ("../../../", "framework/folder/", "framework/../../../../")),
        *({"log": log} for log in ("/etc/passwd", "framework/link.txt", "run.json", "", "log.txt")),  # the last is a link now
        *({"log": "framework/own.log", "from": begin} for begin in ("-1", "1e3", "²")),
    ],
)
def test_nothing_outside_and_nothing_that_is_no_log_is_read(asked: Asked, tmp_path: Path, query: dict[str, str]) -> None:
    (tmp_path / "secret.txt").write_text("a secret")
    framework = asked.running.folder / "framework"
    framework.mkdir()
    (framework / "own.log").touch()
    (framework / "link.txt").symlink_to(tmp_path / "secret.txt")
    (framework / "folder").symlink_to(tmp_path)
    asked.log.unlink()
    asked.log.symlink_to(tmp_path / "secret.txt")
    status, text = asked(**{"execution": asked.key, **query})
    assert status in (404, 503)
    assert ("a secret" in text, text.count("\n")) == (False, 1)
    assert asked.site.answer("/output.json", "&".join(["a=1"] * 99)).status == 400
