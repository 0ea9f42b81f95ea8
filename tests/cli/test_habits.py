"""What people type by habit: a nearest name, the right help page, lists by comma or blank, and nothing that is lost silently."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from command_line import LEAST, Call, write_file
from tuneoff.base.packages import experiments
from tuneoff.experiment.seeds import MOST_SEEDS, read_seeds, seeds_text

PORT = "must be a whole number from 0 to 65535, but got "


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("compare", "own.yaml", "--adapters", "serial"), "did you mean '--adapter'?; see: tuneoff compare --help"),
        (("compare", "own.yaml", "--n-trials", "5"), "did you mean '--trials'?"),
        (("compere", "own.yaml"), "did you mean 'compare'?"),
        (("run", "own.yaml", "--adapter", "plain", "--adapter", "rich"), "--adapter may be given once, but is given twice"),
        (("compare", "own.yaml", "--maxfail", "5", "--maxfail=6"), "--maxfail may be given once, but is given twice"),
        (
            ("compare", "own.yaml", "--seeds", "0,x"),
            "--seeds: must be written like 0 1 2, 0-9, 0,4-7 or count:3, but got 'x'",
        ),
        (("compare", "own.yaml", "--seeds", "9-0"), "--seeds: a range must ascend, but got '9-0'"),
        (("compare", "own.yaml", "--seeds", "count:0"), "--seeds: count must be at least 1, but got 'count:0'"),
        (("compare", "own.yaml", "--seeds", "0-99999999999"), "--seeds: must be at most 10000, but got '0-99999999999'"),
        (("compare", "own.yaml", "--seeds", "0-3", "2"), "tuneoff: --seeds: must differ, but got [0, 1, 2, 3, 2]"),
        (("compare", "own.yaml", "--seeds", "0", "--seeds", "0"), "tuneoff: --seeds: must differ, but got [0, 0]"),
        (("compare", "own.yaml", "--workers", "0"), "tuneoff: --workers: must be at least 1, but got 0"),
        (("compare", "own.yaml", "--trials", "0"), "tuneoff: --trials: must be at least 1, but got 0"),
        (("compare", "own.yaml", "--adapter", "plane"), "tuneoff: --adapter: no adapter named 'plane'; did you mean 'plain'?"),
        (("run", "own.yaml", "--adapter", "plain", "--sampler", "RANDOM"), "did you mean 'random'?"),
        (("compare",), "required: FILE; see: tuneoff compare --help"),
        (("compare", "own.yaml", "--adapter", "plai"), "did you mean 'plain'?"),
        (("compare", "own.yaml", "--adapter", "ric"), "did you mean 'rich'?"),
        (("watch", "--json"), "add --once"),
        (("plan", "own.yaml", "-v"), "unrecognized arguments: -v; see: tuneoff plan --help"),
        (("plan", "x", "--trials", "many"), "--trials: invalid int value: 'many'"),
        (("plan", "x", "--trial", "1"), "unrecognized arguments: --trial 1"),
        ((), "required: COMMAND"),
        (("status", "results"), "which is now: tuneoff watch --runs; see: "),
        (("recommend", "--workers", "8"), "which is now: tuneoff report --text; see: "),
        (("statu",), "invalid choice: 'statu'; known: list, "),
        (("export", "--format", "xml"), "invalid choice: 'xml'"),
        *((("watch", "--serve", f"--port={port}"), f"{PORT}'{port}'") for port in ("-1", "65536", "http", "80.5")),
    ],
)
def test_what_is_mistyped_is_one_line_with_the_way_out(call: Call, fakes: None, arguments: Sequence[str], words: str) -> None:
    write_file(Path("own.yaml"), LEAST)
    answer = call(*arguments)
    assert answer.code == 2
    assert words in answer.line


@pytest.mark.parametrize(
    "arguments",
    [
        ("plan", "own.yaml", "--adapter", "plain", "rich", "--seeds", "0,1"),
        ("plan", "own.yaml", "--adapter", "plain,", "rich", "--seeds", "0, 1"),
        ("plan", "--adapter", "plain", "rich", "own.yaml", "--seeds", "0", "1"),
        ("plan", "--adapter", "plain,rich", "--seeds", "0,1", "own.yaml"),
        ("plan", "--adapter", "plain", "--adapter", "rich", "--seeds", "0", "--seeds=1", "--", "own.yaml"),
    ],
)
def test_lists_are_by_comma_or_blank_and_swallow_no_file(call: Call, fakes: None, arguments: Sequence[str]) -> None:
    write_file(Path("own.yaml"), LEAST)
    answer = call(*arguments)
    assert answer.code == 0, answer.err
    assert "4 runs" in answer.out


@pytest.mark.parametrize(
    ("words", "seeds"),
    [
        (("0", "1", "2"), [0, 1, 2]),
        (("0-9",), list(range(10))),
        (("0,4-7",), [0, 4, 5, 6, 7]),
        (("5-6", "0,", "2"), [5, 6, 0, 2]),
        (("count:3",), [0, 1, 2]),
    ],
)
def test_seeds_are_lists_ranges_or_a_count(call: Call, fakes: None, words: Sequence[str], seeds: Sequence[int]) -> None:
    for content, more in ((LEAST, ("--seeds", *words)), ({**LEAST, "seeds": " ".join(words)}, ())):  # the file's syntax too
        write_file(Path("own.yaml"), content)
        answer = call("plan", "own.yaml", *more, "--json")
        assert [run["spec"]["seed"] for run in json.loads(answer.out)["runs"]] == seeds
        assert answer.err == ""
    assert read_seeds(seeds_text(seeds)) == seeds


def test_seeds_have_a_short_form_and_a_maximum() -> None:
    assert [seeds_text(seeds) for seeds in ([], [0, 1], range(10), [0, 4, 5, 6, 7], [3, 1])] == ["", "0,1", "0-9", "0,4-7", "3,1"]
    assert len(read_seeds(f"0-{MOST_SEEDS - 2},7")) == MOST_SEEDS
    for text in (f"0-{MOST_SEEDS}", f"7,0-{MOST_SEEDS - 1}", f"0-{MOST_SEEDS - 1},7"):
        with pytest.raises(ValueError, match=f"must be at most {MOST_SEEDS}"):
            read_seeds(text)


def test_a_lone_seed_is_not_taken_for_their_number_without_a_word(call: Call, fakes: None) -> None:
    write_file(Path("own.yaml"), LEAST)
    answer = call("plan", "own.yaml", "--seeds", "3")
    assert (answer.code, answer.err) == (0, "seed 3 alone; 3 seeds: --seeds count:3\n")
    assert "1 run;" in answer.out
    assert [call("plan", "own.yaml", "--seeds", *words).err for words in (("0",), ("3", "4"), ("count:1",))] == ["", "", ""]


def test_workers_are_overridden(call: Call, fakes: None) -> None:
    write_file(Path("own.yaml"), {**LEAST, "workers": {"count": 1}})
    plans = [call("plan", "own.yaml", *more).out for more in ((), ("--workers", "1"), ("--workers", "2"))]
    assert plans[0] == plans[1] != plans[2]


def test_help_is_a_command_too(call: Call) -> None:
    assert call("help", "compare").out == call("compare", "--help").out
    assert call("help").out == call("--help").out


def test_an_experiment_that_comes_with_tuneoff_is_taken_by_its_name(call: Call) -> None:
    by_name, by_path = (json.loads(call("plan", file, "--json").out) for file in ("digits", experiments()["digits"]))
    assert by_name["plan_id"] == by_path["plan_id"]
    assert by_name["path"] == "digits"  # printed commands name it as it was given
    for command in ("compare", "run", "plan", "check --space", "doctor"):
        answer = call(*command.split(), "digit")
        assert answer.code == 2
        assert "tuneoff: no experiment named 'digit'; did you mean 'digits'?; known: " in answer.line
    assert "digits" in call("compare", "--help").out.split("FILE ")[1]
    Path("digits").mkdir()  # what is here wins
    assert "this is a folder" in call("plan", "digits").line
    Path("digits").rmdir()
    write_file(Path("digits"), {**LEAST, "workload": "sleep", "adapters": ["serial"]})
    assert json.loads(call("plan", "digits", "--json").out)["plan_id"] != by_name["plan_id"]
