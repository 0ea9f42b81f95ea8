"""Damage JSON by its values: any type at any place, keys dropped, renamed and doubled, lines exchanged, clocks moved."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Callable
from typing import Any

from fuzz.structure import at, paths, put
from fuzz.values import KEYS, STRINGS, Pairs, json_scalar, structure, written

TIMES = ("t", "anchor_monotonic_ns", "anchor_wall_ns", "process_started_ns", "anchor_width_ns")
VERSIONS: tuple[Any, ...] = (0, 2, -1, 99, "1", 1.0, True, None, [], 10**30)
Change = Callable[[Any, random.Random], Any]


def retype(tree: Any, chance: random.Random) -> Any:
    found = paths(tree)
    return put(tree, chance.choice(found) if found and chance.random() < 0.97 else (), json_scalar(chance))


def reshape(tree: Any, chance: random.Random) -> Any:
    path = chance.choice(paths(tree) or [()])
    leaf = copy.deepcopy(at(tree, path)) if chance.random() < 0.5 else json_scalar(chance)
    return put(tree, path, structure(chance, leaf))


def drop(tree: Any, chance: random.Random) -> Any:
    path = chance.choice(paths(tree) or [()])
    if path:
        del at(tree, path[:-1])[path[-1]]
    return tree


def double(tree: Any, chance: random.Random) -> Any:
    path = chance.choice(paths(tree) or [()])
    if not path:
        return tree
    holder, key = at(tree, path[:-1]), path[-1]
    if isinstance(holder, list):
        holder.extend([copy.deepcopy(holder[key])] * chance.choice((1, 1, 3, 1000)))
        return tree
    return put(tree, path[:-1], Pairs([*holder.items(), (key, json_scalar(chance))]))


def add(tree: Any, chance: random.Random) -> Any:
    holders = [path for path in [(), *paths(tree)] if isinstance(at(tree, path), dict)]
    if holders:
        at(tree, chance.choice(holders))[chance.choice((*KEYS, *STRINGS))] = json_scalar(chance)
    return tree


def rename(tree: Any, chance: random.Random) -> Any:
    found = [path for path in paths(tree) if isinstance(path[-1], str)]
    if found:
        path = chance.choice(found)
        holder = at(tree, path[:-1])
        holder[chance.choice((*KEYS, *STRINGS))] = holder.pop(path[-1])
    return tree


def swap(tree: Any, chance: random.Random) -> Any:
    found = paths(tree)
    if not found:
        return tree
    one, other = chance.choice(found), chance.choice(found)
    value = copy.deepcopy(at(tree, other))
    return put(tree, one, value)


def nudge(tree: Any, chance: random.Random) -> Any:
    numbers = [path for path in paths(tree) if isinstance(at(tree, path), int | float)]
    if not numbers:
        return retype(tree, chance)
    path = chance.choice(numbers)
    value = at(tree, path)
    return put(tree, path, chance.choice((value + 1, value - 1, -value, value * 10**9, value / 3, float(value), value * 1e-300)))


def version(tree: Any, chance: random.Random) -> Any:
    if isinstance(tree, dict):
        tree["version" if "version" in tree else "format_version"] = chance.choice(VERSIONS)
    return tree


CHANGES: dict[str, Change] = {
    "retype": retype,
    "reshape": reshape,
    "drop": drop,
    "double": double,
    "add": add,
    "rename": rename,
    "swap": swap,
    "nudge": nudge,
    "version": version,
}


def damaged_json(content: bytes, chance: random.Random) -> tuple[bytes, str]:
    """Return a JSON text with one of its values changed, and what was done; other content is returned as it is."""
    try:
        tree = json.loads(content)
    except ValueError:
        return content, "no JSON"
    change = chance.choice(sorted(CHANGES))
    return _text(CHANGES[change](tree, chance)), change


def damaged_lines(content: bytes, other: bytes, chance: random.Random) -> tuple[bytes, str]:
    """Return lines of JSON of which one, or the order, is changed, and what was done."""
    lines = content.splitlines()
    if not lines:
        return content, "no line"
    place = chance.randrange(len(lines))
    kind = chance.choice(("value", "value", "value", "drop", "double", "exchange", "foreign", "clock", "end"))
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
    elif kind == "clock":
        by = chance.choice((1, -1, 10**9, -(10**9), 3600 * 10**9, 10**18, -(10**18), 2**62))
        name = chance.choice(TIMES)
        begin = place if chance.random() < 0.5 else 0
        lines = [*lines[:begin], *(_moved(line, name, by) for line in lines[begin:])]
    else:
        return content + chance.choice((b'{"type":"epoch"', b"{}", b"\x00" * 512, b"{}\n", b"\n\n")), kind
    return b"".join(line + b"\n" for line in lines), kind


def _moved(line: bytes, name: str, by: int) -> bytes:
    try:
        value = json.loads(line)
        value[name] += by
    except (ValueError, KeyError, TypeError):
        return line
    return _text(value)


def _text(tree: Any) -> bytes:
    return written(tree).encode("utf-8", "surrogatepass")
