"""What commands say of a results folder, as figures: numbers, names and how many texts there are, never how they are worded."""

from __future__ import annotations

import contextlib
import io
import json
import math
import re
import tarfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tuneoff.cli.main import main
from tuneoff.tell.frames.tables import RUN_KEYS

HERE = Path(__file__).parent
FOLDERS, EXPECTED = HERE / "folders", HERE / "expected"
SUFFIX = ".tar.xz"
JSON_COMMANDS = ("report", "verify", "check --controls", "watch --runs", "watch --once")
TOLERANCE = 1e-9  # relative: libraries of numbers differ in their last digits
_NAME = re.compile(r"[\w@.#=+:!*-]{1,80}")  # a name, a status, a digest, a time; everything else is a text
_NUMBER = re.compile(r"\d+(?:\.\d+)?")
PARTS = {"epochs": "metric", "metrics": "name", "steps": "step", "declared": "symbol"}  # tables by a column of names
# ids, texts, and what other figures tell
LEFT_OUT = {"run_id", "execution_id", "source", "coverage", "how", "values", "method", "analysis", "choices", "folder", "rank"}
OF_RUN = frozenset(RUN_KEYS)  # what every table says of a row's run; the table of runs is told whole
_NO_NUMBER = "~"
MOST_ROWS = 3  # of a list that is told row by row
LONGEST_LINE = 200  # of a file of figures
_FEW = 12  # different names in a column that are counted one by one


def unpack(name: str, destination: Path) -> Path:
    """Return a recorded results folder, unpacked."""
    with tarfile.open(FOLDERS / f"{name}{SUFFIX}") as archive:
        archive.extractall(destination, filter="data")
    return destination / name


@dataclass(frozen=True, slots=True)
class Answer:
    """What a command gave back: its exit code, and what it wrote, with DIR for the path to the results folders."""

    code: int
    out: str
    err: str

    @property
    def text(self) -> str:
        """All of it."""
        return f"{self.out}{self.err}exit code {self.code}\n"


def call(folder: Path, *arguments: str) -> Answer:
    """Run a command; `folder`: the results folder that it is about."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main(arguments)
    return Answer(code, *(stream.getvalue().replace(str(folder.parent), "DIR") for stream in (out, err)))


def figures(folder: Path, scratch: Path) -> dict[str, Any]:
    """Return the figures of a results folder; `scratch`: where its tables may be written."""
    told: dict[str, Any] = {}
    for command in JSON_COMMANDS:
        answer = call(folder, *command.split(), str(folder), "--json")
        told[command] = {"code": answer.code, "err": _text(answer.err), "out": figure(json.loads(answer.out or "null"))}
    code = call(folder, "export", str(folder), "--format", "json", "--output", str(scratch)).code
    tables = {path.stem: summary(path.stem, json.loads(path.read_text())) for path in sorted(scratch.glob("*.json"))}
    return {**told, "export": {"code": code, "out": tables}}


def figure(value: Any, most_rows: int = MOST_ROWS) -> Any:
    """Return a JSON value with each text as the numbers in it, each number to ten digits, and many like rows as their columns."""
    if isinstance(value, dict):
        found = {_name(key): figure(item, most_rows) for key, item in value.items() if key not in LEFT_OUT}
        return {key: item for key, item in found.items() if item != _NO_NUMBER}
    if isinstance(value, list):
        is_table = len(value) > most_rows and all(isinstance(row, dict) for row in value)
        return {"rows": len(value), **_columns(value)} if is_table else [figure(item, most_rows) for item in value]
    if isinstance(value, str):
        return _name(value)
    return float(f"{value:.10g}") if isinstance(value, float) else value


def _name(text: str) -> str:
    return text if _NAME.fullmatch(text) else _text(text)


def _text(text: str) -> str:
    return " ".join((_NO_NUMBER, *_NUMBER.findall(text)))


def summary(table: str, rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Return what a table holds, by column."""
    if table not in PARTS:
        return {"rows": len(rows), **_columns(rows)}
    parts: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        own = {name: value for name, value in row.items() if name not in OF_RUN}
        parts.setdefault(own.pop(PARTS[table]), []).append(own)
    return {"rows": len(rows), **{name: _columns(part) for name, part in sorted(parts.items())}}


def _columns(rows: Iterable[dict[str, Any]]) -> dict[str, Any]:
    columns: dict[str, list[Any]] = {}
    for row in rows:
        for name, value in _cells(row):
            columns.setdefault(name, []).append(value)
    return {name: _column(values) for name, values in columns.items()}


def _cells(value: Any, above: str = "") -> Iterator[tuple[str, Any]]:
    """Yield what is in a row, with what lies deeper under joined names."""
    if isinstance(value, dict):
        for name, item in value.items():
            if name not in LEFT_OUT:
                yield from _cells(item, f"{above}.{_name(name)}" if above else _name(name))
    elif isinstance(value, list):
        for item in value:
            yield from _cells(item, f"{above}[]")
    elif value is not None:
        yield above, value


def _column(values: list[Any]) -> Any:
    """Return of numbers their count, their sum and that of each times its place; of names how often each is there."""
    numbers = [value for value in values if isinstance(value, int | float) and not isinstance(value, bool)]
    if numbers:
        sums = (math.fsum(numbers), math.fsum(place * number for place, number in enumerate(numbers, 1)))
        return [len(numbers), *(figure(float(total)) for total in sums)]
    names = Counter(str(figure(value)) for value in values)
    return dict(sorted(names.items())) if len(names) <= _FEW else [len(values), len(names)]


def written(value: Any, depth: int = 9) -> str:
    """Return a JSON value as text whose lines are short enough to be compared by eyes."""
    if depth == 0 or len(text := json.dumps(value, ensure_ascii=False)) <= LONGEST_LINE:
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, dict):
        items = (f"{json.dumps(key, ensure_ascii=False)}: {written(item, depth - 1)}" for key, item in value.items())
        return "{\n" + ",\n".join(items) + "}"
    return "[\n" + ",\n".join(written(item, depth - 1) for item in value) + "]" if isinstance(value, list) else text


def differences(expected: Any, actual: Any, path: str = "") -> Iterator[str]:
    """Yield where two values differ, one line each."""
    if isinstance(expected, Mapping) and isinstance(actual, Mapping):
        for key in (*expected, *(key for key in actual if key not in expected)):
            if key not in actual or key not in expected:
                yield f"{path}.{key}: {'is missing' if key in expected else 'is new'}"
            else:
                yield from differences(expected[key], actual[key], f"{path}.{key}")
    elif isinstance(expected, list) and isinstance(actual, list):
        if len(expected) != len(actual):
            yield f"{path}: {len(expected)} items expected, but there are {len(actual)}"
        for number, (one, other) in enumerate(zip(expected, actual, strict=False)):
            yield from differences(one, other, f"{path}[{number}]")
    elif not _equal(expected, actual):
        yield f"{path}: {expected!r} expected, but it is {actual!r}"


def _equal(one: Any, other: Any) -> bool:
    if isinstance(one, bool) or isinstance(other, bool) or not isinstance(one, int | float) or not isinstance(other, int | float):
        return type(one) is type(other) and bool(one == other)
    return math.isclose(one, other, rel_tol=TOLERANCE, abs_tol=1e-12)
