"""Damage a results folder: its files' bytes and values, and the files themselves."""

from __future__ import annotations

import contextlib
import random
import shutil
from collections.abc import Callable
from pathlib import Path

from fuzz import octets
from fuzz.odd_files import ODD_FILES
from fuzz.trees import damaged_json, damaged_lines

WEIGHTS = {  # how often a file is damaged, by the end of its name
    "end.json": 6,
    "run.json": 6,
    "matrix.json": 10,
    "power.jsonl": 5,
    "accounting.json": 5,
    "spec.json": 4,
    "test.json": 3,
    "leftovers.jsonl": 4,
    ".safetensors": 1,
    ".csv": 1,
    ".jsonl": 3,
    ".json": 1,
    ".txt": 1,
}
FOREIGN = (
    *("events/x.jsonl", "run.json", "end.json", "leftovers.jsonl", "outside.txt", "versions.json", "later/events/x.jsonl", "x"),
    *(".lock", ".executions", "tickets"),
)
Damage = Callable[[Path, random.Random], str]


def damage(results: Path, chance: random.Random) -> list[str]:
    """Damage a results folder in one to three ways and return what was done."""
    done = []
    for _ in range(chance.choice((1, 1, 1, 2, 3))):
        name = chance.choice(("bytes", "value", "value", "value", "value", "tree", "odd", "foreign"))
        with contextlib.suppress(OSError, IndexError):  # an earlier damage took what this one needs
            done.append(f"{name}: {DAMAGES[name](results, chance)}")
    return done


def files(results: Path) -> list[Path]:
    """Return all files of a results folder, in a fixed order."""
    return sorted(path for path in results.rglob("*") if path.is_file() and not path.is_symlink())


def a_file(results: Path, chance: random.Random) -> Path:
    """Return one of the files, those that matter more often."""
    found = files(results)
    weights = [next((weight for end, weight in WEIGHTS.items() if path.name.endswith(end)), 1) for path in found]
    return chance.choices(found, weights)[0]


def _bytes(results: Path, chance: random.Random) -> str:
    path, other = a_file(results, chance), chance.choice(files(results))
    change = chance.choice(sorted(octets.CHANGES))
    path.write_bytes(octets.CHANGES[change](path.read_bytes(), other.read_bytes(), chance))
    return f"{change} in {_name(path, results)}"


def _value(results: Path, chance: random.Random) -> str:
    path = a_file(results, chance)
    content = path.read_bytes()
    if path.suffix == ".jsonl":
        others = [other for other in files(results) if other.suffix == ".jsonl"]
        after, change = damaged_lines(content, chance.choice(others).read_bytes(), chance)
    else:
        after, change = damaged_json(content, chance)
    path.write_bytes(after)
    return f"{change} in {_name(path, results)}"


def _tree(results: Path, chance: random.Random) -> str:
    """Remove, exchange, copy or rename files and folders."""
    kind = chance.choice(("remove", "remove", "exchange", "replace", "copy", "rename", "remove folder"))
    path = a_file(results, chance)
    other = chance.choice([found for found in files(results) if found.suffix == path.suffix])
    executions = sorted(results.glob("runs/*/*"))
    if kind == "remove":
        path.unlink()
    elif kind == "exchange":
        one, two = path.read_bytes(), other.read_bytes()
        path.write_bytes(two)
        other.write_bytes(one)
    elif kind == "replace":
        path.write_bytes(other.read_bytes())
    elif kind == "copy":
        path = chance.choice(executions)
        target = chance.choice((path.with_name(f"{path.name}x"), chance.choice(executions).parent / "copy-123456"))
        shutil.copytree(path, target, symlinks=True)
    elif kind == "rename":
        path = chance.choice([*executions, *(execution.parent for execution in executions)])
        path.rename(path.with_name(chance.choice((f"{path.name}x", "x", "\udcff", "a" * 200, "é", ".hidden", path.name[:-1]))))
    else:
        folders = sorted({found.parent for found in files(results)} | set(executions) | {results / "runs"})
        path = chance.choice(folders)
        shutil.rmtree(path)
    return f"{kind} {_name(path, results)}"


def _odd(results: Path, chance: random.Random) -> str:
    """Put something that is not a file in a file's or a folder's place."""
    path = a_file(results, chance)
    if chance.random() < 0.2:
        path = path.parent
    if path == results:
        path = results / "matrix.json"
    kind = chance.choice(sorted(ODD_FILES))
    shutil.rmtree(path) if path.is_dir() else path.unlink()
    ODD_FILES[kind](path, chance)
    return f"{kind} as {_name(path, results)}"


def _foreign(results: Path, chance: random.Random) -> str:
    """Add a file that nobody asked for."""
    place = chance.choice([*sorted(results.glob("runs/*/*")), *sorted(results.glob("runs/*")), results])
    name = chance.choice((*FOREIGN, "\udcff\udcfe", "a" * 250, "new\nline", "{}"))
    path = place / name
    path.parent.mkdir(parents=True, exist_ok=True)
    others = [
        b"",
        b"{}",
        b"null",
        b'{"kind": "folder", "value": "/"}\n',
        b'{"kind": "cgroup", "value": 5}\n[]\n5\n',
        chance.randbytes(300),
    ]
    others += [chance.choice(files(results)).read_bytes()]
    if chance.random() < 0.3 and not path.exists():
        ODD_FILES[chance.choice(sorted(ODD_FILES))](path, chance)
    else:
        path.write_bytes(chance.choice(others))
    return f"{name!r} in {_name(place, results)}"


def _name(path: Path, results: Path) -> str:
    return repr(path.relative_to(results).as_posix())


DAMAGES: dict[str, Damage] = {"bytes": _bytes, "value": _value, "tree": _tree, "odd": _odd, "foreign": _foreign}
