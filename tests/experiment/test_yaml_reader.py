"""YAML by the rules of version 1.2, with one line for whatever is wrong."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from builders.refusals import refusal
from tuneoff.experiment.yaml_reader import read_yaml


def _read(folder: Path, text: str | bytes) -> dict[str, object]:
    path = folder / "file.yaml"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return read_yaml(path)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1e-4", 1e-4),
        ("1E5", 1e5),
        ("3.", 3.0),
        (".5", 0.5),
        ("-2.5e+3", -2500.0),
        ("010", 10),
        ("0x1F", 31),
        ("0o17", 15),
        ("+3", 3),
        ("-.inf", float("-inf")),
        ("yes", "yes"),
        ("no", "no"),
        ("on", "on"),
        ("off", "off"),
        ("true", True),
        ("False", False),
        ("null", None),
        ("~", None),
        ("", None),
        ("2020-01-01", "2020-01-01"),
        ("1:30", "1:30"),
        ("1_000", "1_000"),
        ("1.2.3", "1.2.3"),
        ("=", "="),
        ('"1e-4"', "1e-4"),
    ],
)
def test_plain_scalars_mean_what_they_look_like(tmp_path: Path, text: str, value: object) -> None:
    read = _read(tmp_path, f"key: {text}\n")["key"]
    assert read == value
    assert type(read) is type(value)


def test_anchors_and_merge_keys_work(tmp_path: Path) -> None:
    text = "a: &a {x: 1, y: 2}\nc: {d: {e: &b {<<: *a, x: 3}}}\nf: {<<: *b, y: 4}\n"
    assert _read(tmp_path, text) == {"a": {"x": 1, "y": 2}, "c": {"d": {"e": {"x": 3, "y": 2}}}, "f": {"x": 3, "y": 4}}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "the file is empty"),
        ("# only a comment\n", "the file is empty"),
        ("- a\n- b\n", "must be a mapping of keys to values, but it is a list"),
        ("just text", "must be a mapping of keys to values, but it is a str"),
        ("a: 1\nb: 2\na: 3\n", "line 3: key 'a' is given twice, first on line 1"),
        ("a: {b: 1, b: 1}\n", "line 1: key 'b' is given twice"),
        ("1: a\n", "line 1: a key must be text, but got '1'; put it in quotes"),
        ("? [a]\n: b\n", "a key must be text"),
        ("a: [1, 2\n", "not YAML: line 2, column 1"),
        ("a: b: c\n", "not YAML: line 1"),
        ("a: 1\n---\nb: 2\n", "not YAML"),
        ("a: !!python/object/apply:os.system [echo]\n", "the tag !!python/object/apply:os.system is not read"),
        ("a: 1\n---\nb: 2\n", "found another document; write one file for each document"),
        ("a:\tb\n", "; indent with spaces, not tabs"),
        ("a: @b\n", "; put text that begins with it in quotes"),
        ("a: b: c\n", "; quote text with a colon"),
        ("a: !!python/name:os.system ''\n", "line 1: the tag !!python/name:os.system is not read; write a plain value"),
        ("a: !!timestamp 2020-01-01\n", "the tag !!timestamp is not read"),
        ("a: !!set {b}\n", "the tag !!set is not read"),
        ("a: !!binary aGk=\n", "the tag !!binary is not read"),
        ("a: !own {b: 1}\n", "the tag !own is not read"),
        ("a: !!float x\n", "not YAML"),
        ("a: !!bool maybe\n", "not YAML"),
        ('a: !!int ""\n', "not YAML"),
        ("a: 0x" + "f" * 5000, "line 1: a whole number may have at most 300 digits, but got 5002"),
        ("a: " + "1" * 600_000, "it has more than 500000 bytes"),
        ("a: &a [*a]\n", "nested at most 50 deep"),
        ("a: " + "[" * 2000 + "]" * 2000, "nested more than 50 deep"),
        ("a: *unknown\n", "not YAML"),
        (b"a: \xff\n", "must be UTF-8 text, but byte 3 is not"),
        (b"a: \x00\n", "not YAML"),
        ("a: " + "9" * 5000, "line 1: a whole number may have at most 300 digits, but got 5000"),
    ],
)
def test_what_is_wrong_is_one_line_with_the_path(tmp_path: Path, text: str | bytes, problem: str) -> None:
    message = refusal(_read, tmp_path, text)
    assert message.startswith(f"{tmp_path}/file.yaml: ")
    assert problem in message


def test_aliases_that_multiply_are_refused(tmp_path: Path) -> None:
    lines = ["a0: &a0 [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 9)]
    assert "at most 1000000 values" in refusal(_read, tmp_path, "\n".join(lines))


def test_merge_keys_that_multiply_are_refused(tmp_path: Path) -> None:
    lines = ["a0: &a0 {x: 1, y: 2}"]
    lines += [f"a{n}: &a{n} {{<<: [*a{n - 1}, *a{n - 1}]}}" for n in range(1, 40)]
    assert "merge keys (`<<`) may add at most 100000 keys" in refusal(_read, tmp_path, "\n".join(lines))


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.yaml")
    assert "pipe.yaml: the file cannot be read: it is a pipe, a socket or a device" in refusal(read_yaml, tmp_path / "pipe.yaml")
