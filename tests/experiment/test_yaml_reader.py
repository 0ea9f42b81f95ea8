"""YAML by the rules of version 1.2, with one line for whatever is wrong."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from builders.refusals import refusal
from tuneoff.experiment.yaml_reader import read_yaml


def _read(folder: Path, text: str | bytes) -> dict[str, object]:
    path = folder / "file.yaml"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return read_yaml(path)


TEXTS = ("yes", "no", "on", "off", "2020-01-01", "1:30", "1_000", "1.2.3", "=")
SCALARS: dict[str, Any] = {
    "1e-4": 1e-4,
    "1E5": 1e5,
    "3.": 3.0,
    ".5": 0.5,
    "-2.5e+3": -2500.0,
    "-.inf": float("-inf"),
    '"1e-4"': "1e-4",
    "010": 10,
    "0x1F": 31,
    "0o17": 15,
    "+3": 3,
    "true": True,
    "False": False,
    "null": None,
    "~": None,
    "": None,
    **dict(zip(TEXTS, TEXTS, strict=True)),
}


def test_plain_scalars_mean_what_they_look_like(tmp_path: Path) -> None:
    read = _read(tmp_path, "".join(f"k{number}: {text}\n" for number, text in enumerate(SCALARS))).values()
    assert [(type(value), value) for value in read] == [(type(value), value) for value in SCALARS.values()]


def test_anchors_and_merge_keys_work(tmp_path: Path) -> None:
    text = "a: &a {x: 1, y: 2}\nc: {d: {e: &b {<<: *a, x: 3}}}\nf: {<<: *b, y: 4}\n"
    assert _read(tmp_path, text) == {"a": {"x": 1, "y": 2}, "c": {"d": {"e": {"x": 3, "y": 2}}}, "f": {"x": 3, "y": 4}}


def laughs(first: str, level: str, count: int) -> str:
    """A billion laughs: each level has the one before it several times."""
    return "\n".join([f"a0: &a0 {first}", *(f"a{n}: &a{n} {level.format(n - 1)}" for n in range(1, count))])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("# only a comment\n", "the file is empty"),
        ("- a\n- b\n", "must be a mapping of keys to values, but it is a list"),
        ("a: 1\nb: 2\na: 3\n", "line 3: key 'a' is given twice, first on line 1"),
        ("a: {b: 1, b: 1}\n", "line 1: key 'b' is given twice"),
        ("1: a\n", "line 1: a key must be text, but got '1'; put it in quotes"),
        ("? [a]\n: b\n", "a key must be text"),
        ("a: [1, 2\n", "not YAML: line 2, column 1"),
        ("a: 1\n---\nb: 2\n", "found another document"),
        ("a: !!python/object/apply:os.system [echo]\n", "the tag !!python/object/apply:os.system is not read"),
        ("a: !!python/name:os.system ''\n", "line 1: the tag !!python/name:os.system is not read; write a plain value"),
        ("a: !!set {b}\n", "the tag !!set is not read"),
        ("a: !own {b: 1}\n", "the tag !own is not read"),
        ("a: !!float x\n", "not YAML"),
        ('a: !!int ""\n', "not YAML"),
        ("a: *unknown\n", "not YAML"),
        (b"a: \x00\n", "not YAML"),
        (b"a: \xff\n", "must be UTF-8 text, but byte 3 is not"),
        ("a: 0x" + "f" * 5000, "line 1: a whole number may have at most 300 digits, but got 5002"),
        ("a: " + "9" * 5000, "line 1: a whole number may have at most 300 digits, but got 5000"),
        ("a: " + "1" * 600_000, "it has more than 500000 bytes"),
        ("a: &a [*a]\n", "nested at most 50 deep"),
        ("a: " + "[" * 2000 + "]" * 2000, "nested more than 50 deep"),
        (laughs("[1]", f"[{', '.join(['*a{0}'] * 10)}]", 9), "at most 1000000 values"),
        (laughs("{x: 1, y: 2}", "{{<<: [*a{0}, *a{0}]}}", 40), "merge keys (`<<`) may add at most 100000 keys"),
    ],
)
def test_what_is_wrong_is_one_line_with_the_path(tmp_path: Path, text: str | bytes, problem: str) -> None:
    message = refusal(_read, tmp_path, text)
    assert message.startswith(f"{tmp_path}/file.yaml: ")
    assert problem in message


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.yaml")
    assert "pipe.yaml: the file cannot be read: it is a pipe, a socket or a device" in refusal(read_yaml, tmp_path / "pipe.yaml")
