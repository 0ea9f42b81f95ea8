"""Change a tree of values at any place: keys, types, numbers, names, depth. Each change is a function of a tree and of chance."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Callable, Mapping
from typing import Any

from fuzz.values import KEYS, STRINGS, Pairs, Raw, json_scalar, structure, written

Path = tuple[Any, ...]
Scalar = Callable[[random.Random], Any]
Change = Callable[[Any, random.Random, Scalar], Any]
KEY_TEXTS = ("5", "null", "true", "1.5", "[a]", "? a", "<<", "&k k", "*k", ".nan")


def paths(tree: Any, here: Path = ()) -> list[Path]:
    """Return the paths of all values below a tree."""
    found: list[Path] = []
    items: Any = ()
    if isinstance(tree, Mapping):
        items = tree.items()
    elif isinstance(tree, list):
        items = enumerate(tree[:200])
    for key, value in items:
        found.append((*here, key))
        found.extend(paths(value, (*here, key)))
    return found


def at(tree: Any, path: Path) -> Any:
    """Return the value at a path."""
    for key in path:
        tree = tree[key]
    return tree


def put(tree: Any, path: Path, value: Any) -> Any:
    """Set the value at a path and return the tree."""
    if not path:
        return value
    at(tree, path[:-1])[path[-1]] = value
    return tree


def _somewhere(tree: Any, chance: random.Random) -> Path:
    return chance.choice(paths(tree) or [()])


def _mapping(tree: Any, chance: random.Random) -> Any:
    """Return one of the mappings, or an empty one that is in no tree."""
    found = [at(tree, path) for path in [(), *paths(tree)] if isinstance(at(tree, path), dict)]
    return chance.choice(found or [{}])


def drop(tree: Any, chance: random.Random, scalar: Scalar) -> Any:
    if path := _somewhere(tree, chance):
        del at(tree, path[:-1])[path[-1]]
    return tree


def double(tree: Any, chance: random.Random, scalar: Scalar) -> Any:
    """Give a key twice, or an item of a list."""
    path = _somewhere(tree, chance)
    if not path:
        return tree
    holder, key = at(tree, path[:-1]), path[-1]
    if isinstance(holder, list):
        holder.extend([copy.deepcopy(holder[key])] * chance.choice((1, 1, 3, 40, 1000)))
        return tree
    second = copy.deepcopy(holder[key]) if chance.random() < 0.5 else scalar(chance)
    return put(tree, path[:-1], Pairs([*holder.items(), (key, second)]))


def rename(tree: Any, chance: random.Random, scalar: Scalar) -> Any:
    holder = _mapping(tree, chance)
    if holder:
        key = chance.choice(list(holder))
        near = [str(key)[:-1], f"{key}s", str(key).upper(), f" {key}"]
        names: list[Any] = [chance.choice(KEYS), chance.choice(STRINGS), *near, *map(Raw, KEY_TEXTS)]
        holder[chance.choice(names)] = holder.pop(key)
    return tree


def replace_scalar(tree: Any, chance: random.Random, scalar: Scalar) -> Any:
    return put(tree, _somewhere(tree, chance) if chance.random() < 0.97 else (), scalar(chance))


def replace_type(tree: Any, chance: random.Random, scalar: Scalar) -> Any:
    path = _somewhere(tree, chance)
    leaf = copy.deepcopy(at(tree, path)) if chance.random() < 0.5 else scalar(chance)
    return put(tree, path, structure(chance, leaf))


def swap(tree: Any, chance: random.Random, scalar: Scalar) -> Any:
    one, other = _somewhere(tree, chance), _somewhere(tree, chance)
    return put(tree, one, copy.deepcopy(at(tree, other)))


def insert(tree: Any, chance: random.Random, scalar: Scalar) -> Any:
    """Put a known key, or a hostile one, where it may or may not belong."""
    value = copy.deepcopy(at(tree, _somewhere(tree, chance))) if chance.random() < 0.3 else scalar(chance)
    _mapping(tree, chance)[chance.choice((*KEYS, *KEYS, *STRINGS))] = value
    return tree


def nudge(tree: Any, chance: random.Random, scalar: Scalar) -> Any:
    """Change a number a little, or a lot."""
    numbers = [path for path in paths(tree) if isinstance(at(tree, path), int | float)]
    if not numbers:
        return replace_scalar(tree, chance, scalar)
    path = chance.choice(numbers)
    value = at(tree, path)
    near = (value + 1, value - 1, -value, value / 3, int(value), float(value))
    return put(tree, path, chance.choice((*near, value * 1e6, value * 10**20, value * 1e-300)))


OF_JSON: dict[str, Change] = {
    "drop": drop,
    "double": double,
    "rename": rename,
    "scalar": replace_scalar,
    "type": replace_type,
    "swap": swap,
    "insert": insert,
    "nudge": nudge,
}


def damaged_json(content: bytes, chance: random.Random) -> tuple[bytes, str]:
    """Return a JSON text with one of its values changed, and what was done; other content is returned as it is."""
    try:
        tree = json.loads(content)
    except ValueError:
        return content, "no JSON"
    change = chance.choice(sorted(OF_JSON))
    return _text(OF_JSON[change](tree, chance, json_scalar)), change


def damaged_lines(content: bytes, other: bytes, chance: random.Random) -> tuple[bytes, str]:
    """Return lines of JSON of which one, or the order, is changed, and what was done."""
    lines = content.splitlines()
    if not lines:
        return content, "no line"
    place = chance.randrange(len(lines))
    kind = chance.choice(("value", "value", "value", "drop", "double", "exchange", "foreign", "end"))
    if kind == "value":
        lines[place], kind = damaged_json(lines[place], chance)
    elif kind == "drop":
        del lines[place]
    elif kind == "double":
        lines.insert(place, lines[place])
    elif kind == "exchange":
        second = chance.randrange(len(lines))
        lines[place], lines[second] = lines[second], lines[place]
    elif kind == "foreign":
        lines.insert(place, chance.choice(other.splitlines() or [b"{}"]))
    else:
        return content + chance.choice((b'{"type":"epoch"', b"{}", b"\x00" * 512, b"{}\n", b"\n\n")), kind
    return b"".join(line + b"\n" for line in lines), kind


def _text(tree: Any) -> bytes:
    return written(tree).encode("utf-8", "surrogatepass")
