"""Values that programs trip over, as text of YAML or JSON and as Python values."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from fuzz.bases import trees


def _keys(tree: Any) -> Iterator[str]:
    """Yield each key of a tree."""
    if isinstance(tree, Mapping):
        yield from (key for key in tree if isinstance(key, str))
    for value in tree.values() if isinstance(tree, Mapping) else tree if isinstance(tree, list) else ():
        yield from _keys(value)


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


NUMBERS = (
    *_words(
        "0 -0 -0.0 1 -1 2 1.5 0.1 -1.5 1e-4 1e-320 1e308 -1e308 1e309 1e999 10000 10001 100000 1000000 2147483648 4294967296"
    ),
    *_words("9007199254740993 9223372036854775807 9223372036854775808 18446744073709551616 -9223372036854775809"),
    *_words("1000000000000000000000000000000"),
    *(
        "1" + "0" * 400,
        "9" * 5000,
        "-" + "9" * 4300,
        "0." + "0" * 400,
    ),
)
YAML_TRAPS = (
    *_words(
        ".nan .NaN .inf -.inf +.INF nan inf NaN Infinity 010 0o17 0o8 0x1F 0x 0b101 1_000 yes no on off y n True TRUE ~ null"
    ),
    *_words("Null 2026-01-01 2026-13-45 2026-01-01T00:00:00Z 12:30:45 1:2 190:20:30 << = *unknown @at `tick %TAG &x ] 'open [,]"),
    *_words("{,} } --- ... -"),
    *('"open', "0x" + "f" * 5000, "!!int 0x" + "f" * 4000, "", "!!python/object/apply:os.system ['true']"),
    *("!!binary aGk=", "!!timestamp 2026-01-01", "!!set {a, b}", "!!omap [a: 1]", "!!float x", "!!int abc"),
    *("!!bool maybe", "!!null x", "!!str 5", "!local x", "&a [*a]", "&a {k: *a}", "| \n text", "> \n folded"),
    *(
        "? [complex]",
        "[1, 2",
        "{a: 1",
        "# comment",
        "- 1",
        "a: b",
        "[a: 1]",
        "{? a: b}",
    ),
)
STRINGS = (
    *_words("x a: :b a:b:c .:x ..a:b : .. ../.. / /etc/passwd /dev/zero /dev/stdin /proc/self/mem . ~ - --help %s%n {0} {x!r}"),
    *_words(
        "$(true) `true` serial optuna serial@local katib@emulated ray-tune none null auto default random fixed grid scripted"
    ),
    *_words(
        "os:system os:nothing nowhere:Nothing tuneoff_adapters.serial:SerialAdapter json builtins:print tuneoff.cli.main:main"
    ),
    *_words("sys:modules min max time.jct WORLD DEU"),
    *("", " ", "\t", "\n", "a\nb", "\x00", "a\x00b", "\x1b[31mred\x1b[0m", "\x07", "\x7f", "\x85", "\u2028"),
    *("\ufeff", "\u200b", "\ud800", "\U0001f600", "\u0435", "\ufb01", "e\u0301", "é" * 200, "\u202egnp.exe"),
    *(
        "a b:c",
        "; true",
        "a" * 101,
        "a" * 300,
        "a" * 5000,
        "a" * 100000,
    ),
)
KEYS = tuple(sorted({key for tree in trees() for key in _keys(tree)}))


class Raw:
    """Text that is written as it is, where a value stands."""

    def __init__(self, text: str) -> None:
        self.text = text


class Pairs:
    """A mapping whose keys may be given twice."""

    def __init__(self, pairs: Sequence[tuple[Any, Any]]) -> None:
        self.pairs = list(pairs)


def scalar(chance: random.Random) -> Any:
    """Return a hostile scalar: text to be written as it is, or a string in quotes."""
    kind = chance.random()
    if kind < 0.45:
        return Raw(chance.choice(NUMBERS))
    if kind < 0.7:
        return Raw(chance.choice(YAML_TRAPS))
    return chance.choice(STRINGS)


def json_scalar(chance: random.Random) -> Any:
    """Return a hostile scalar that is JSON, or nearly: NaN tokens and numbers beyond any type are among them."""
    kind = chance.random()
    if kind < 0.5:
        return Raw(chance.choice((*NUMBERS, "NaN", "Infinity", "-Infinity", "nan", "01", "+1", "1.", ".5")))
    return chance.choice((None, True, False)) if kind < 0.65 else chance.choice(STRINGS)


def structure(chance: random.Random, leaf: Any) -> Any:
    """Return a value of another shape around a leaf."""
    kind = chance.randrange(8)
    if kind == 0:
        return [leaf]
    if kind == 1:
        return {chance.choice(KEYS): leaf}
    if kind == 2:
        return []
    if kind == 3:
        return {}
    if kind == 4:
        return [leaf] * chance.choice((2, 50, 5000))
    if kind == 5:
        return {f"k{number}": leaf for number in range(chance.choice((2, 50, 5000)))}
    opening, closing = chance.choice((("[", "]"), ('{"a": ', "}")))
    depth = chance.choice((5, 49, 51, 200, 1000, 20_000))
    return Raw(opening * depth + "1" + closing * depth) if kind == 6 else [[leaf], {"a": [leaf]}]


def written(value: Any) -> str:
    """Return a value as flow YAML, which is JSON but for `Raw` and `Pairs`."""
    if isinstance(value, Raw):
        return value.text
    if isinstance(value, Pairs):
        return "{" + ", ".join(f"{_key(key)}: {written(item)}" for key, item in value.pairs) + "}"
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_key(key)}: {written(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(written(item) for item in value) + "]"
    if isinstance(value, float) and not math.isfinite(value):
        return {math.inf: ".inf", -math.inf: "-.inf"}.get(value, ".nan")
    return json.dumps(value, default=str)


def _key(key: Any) -> str:
    return key.text if isinstance(key, Raw) else json.dumps(str(key))
