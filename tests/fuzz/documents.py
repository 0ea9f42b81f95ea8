"""Whole files that are hostile by what YAML and `include` can do: aliases, merge keys, circles, depth, length."""

from __future__ import annotations

import random
from collections.abc import Callable

from fuzz.bases import ROOT
from fuzz.values import STRINGS

LEAST = 'workload: "null"\nadapters: [serial]\nbudget: {trials: 6, epochs_per_trial: 2}\n'
Document = Callable[[random.Random], str]


def laughs(chance: random.Random) -> str:
    """A billion laughs: lists of aliases to lists of aliases."""
    width, depth = chance.choice(((10, 9), (2, 30), (9, 12), (3, 5)))
    lines = ["a0: &a0 [lol]"]
    lines += [f"a{level}: &a{level} [{', '.join([f'*a{level - 1}'] * width)}]" for level in range(1, depth)]
    return "\n".join(lines) + f"\n{LEAST}"


def merge_laughs(chance: random.Random) -> str:
    """The same with merge keys, whose mappings a reader may copy at every level."""
    width, depth = chance.choice(((2, 30), (10, 9), (5, 4), (3, 12)))
    lines = ["a0: &a0 {x: 1, y: 2}"]
    lines += [f"a{level}: &a{level} {{<<: [{', '.join([f'*a{level - 1}'] * width)}]}}" for level in range(1, depth)]
    return "\n".join(lines) + f"\n{LEAST}"


def merges(chance: random.Random) -> str:
    """Merge keys, right and wrong."""
    value = chance.choice(("*b", "[*b, *b]", "5", "[5]", "text", "null", "{a: 1}", "*a", "[[*b]]", "&c [*c]", "*nowhere"))
    return f"b: &b {{trials: 3}}\n{LEAST}a: &a\n  <<: {value}\n  trials: 1\nworkers: {{<<: *b, count: 1}}\n"


def circle(chance: random.Random) -> str:
    """An alias to what it is in."""
    return LEAST + chance.choice(
        (
            "seeds: &s [0, *s]\n",
            "search_space: &s {x: *s}\n",
            "matrix: &m {budget.trials: [*m]}\n",
            "stops: &s [{configuration: *s}]\n",
        )
    )


def deep(chance: random.Random) -> str:
    """Far too deep, in flow or block style."""
    depth = chance.choice((49, 50, 51, 300, 1200, 5000, 60_000))
    kind = chance.randrange(4)
    if kind == 0:
        return f"{LEAST}seeds: {'[' * depth}{']' * depth}\n"
    if kind == 1:
        return f"{LEAST}search_space: {'{a: ' * depth}1{'}' * depth}\n"
    if kind == 2:
        return LEAST + "".join(f"{' ' * level}a:\n" for level in range(min(depth, 3000)))
    return f"{LEAST}seeds:\n{'- ' * min(depth, 5000)}1\n"


def long(chance: random.Random) -> str:
    """Far too long."""
    kind = chance.randrange(6)
    count = chance.choice((1000, 100_000))
    if kind == 0:
        return f"{LEAST}seeds: [{', '.join(map(str, range(count)))}]\n"
    if kind == 1:
        return LEAST + "".join(f"key{number}: {number}\n" for number in range(count))
    if kind == 2:
        return f"{LEAST}name: {'a' * count * 20}\n"
    if kind == 3:
        return LEAST + "# nothing\n" * count
    if kind == 4:
        return f"{LEAST}sampler: fixed\nconfigurations: [{', '.join(['{x: 1}'] * min(count, 20_000))}]\n"
    return f"{LEAST}seeds: [{'*a, ' * count}]\n"


def documents(chance: random.Random) -> str:
    """Several documents, directives, tags."""
    head = chance.choice(
        ("%YAML 1.1\n---\n", "%YAML 9.9\n---\n", "%TAG ! tag:x,2000:\n---\n", "---\n", "--- !x\n", "--- |\n", "!!map\n", "&top\n")
    )
    return head + LEAST + chance.choice(("", "---\n", "...\n", "---\na: 1\n", "...\nb\n", "--- {}\n"))


def includes(chance: random.Random) -> str:
    """Files that include themselves, each other, nothing, or what is not a file of the kind."""
    names: tuple[str, ...] = (
        *("experiment.yaml", "./experiment.yaml", "other.yaml", "digits.yaml", "mnist.yaml", ".", "..", "series.csv"),
        *("prices.yaml", "pipe", "/dev/zero", "/dev/null", "/proc/self/mem", "/proc/kmsg", "endless"),
        *(str(ROOT / "benchmarks" / "digits.yaml"), *STRINGS[:20]),
    )
    count = chance.choice((1, 1, 2, 30))
    chosen = [chance.choice(names) for _ in range(count)]
    value = chosen[0] if chance.random() < 0.4 else f"[{', '.join(repr(name) for name in chosen)}]"
    return f"include: {value!r}\n{LEAST}" if not value.startswith("[") else f"include: {value}\n{LEAST}"


def include_laughs(chance: random.Random) -> str:
    """A file that includes another one ten times, which does the same: the neighbours are written by the caller."""
    return f"include: [{', '.join(['level1.yaml'] * 10)}]\n{LEAST}"


def only(chance: random.Random) -> str:
    """No mapping at all, or next to nothing."""
    return chance.choice(
        (
            *("", "5", "text", "[]", "null", "~", "[1, 2]", "- a\n- b", "{}", "a", "'", '"', "{"),
            *("include: experiment.yaml", "? a", ": b", "&a *a", "*a"),
        )
    )


DOCUMENTS: dict[str, Document] = {
    "laughs": laughs,
    "merge laughs": merge_laughs,
    "merges": merges,
    "circle": circle,
    "deep": deep,
    "long": long,
    "documents": documents,
    "includes": includes,
    "include laughs": include_laughs,
    "only": only,
}
