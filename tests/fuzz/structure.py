"""Change the structure of a file: keys, types, numbers, names, depth. Each change is a function of a tree and of chance."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable, Mapping
from typing import Any

from fuzz.values import DOTTED, KEYS, STRINGS, Pairs, Raw, scalar, structure

Path = tuple[Any, ...]
Change = Callable[[Any, random.Random], Any]


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
    found = paths(tree)
    return chance.choice(found) if found else ()


def _mapping(tree: Any, chance: random.Random) -> Path:
    found = [path for path in [(), *paths(tree)] if isinstance(at(tree, path), dict)]
    return chance.choice(found)


def drop(tree: Any, chance: random.Random) -> Any:
    path = _somewhere(tree, chance)
    if path:
        del at(tree, path[:-1])[path[-1]]
    return tree


def double(tree: Any, chance: random.Random) -> Any:
    """Give a key twice, or an item of a list."""
    path = _somewhere(tree, chance)
    if not path:
        return tree
    holder, key = at(tree, path[:-1]), path[-1]
    if isinstance(holder, list):
        holder.extend([copy.deepcopy(holder[key])] * chance.choice((1, 1, 3, 40)))
        return tree
    pairs = [*holder.items(), (key, copy.deepcopy(holder[key]) if chance.random() < 0.5 else scalar(chance))]
    return put(tree, path[:-1], Pairs(pairs))


def rename(tree: Any, chance: random.Random) -> Any:
    holder = at(tree, _mapping(tree, chance))
    if not holder:
        return tree
    key = chance.choice(list(holder))
    names: list[Any] = [chance.choice(KEYS), chance.choice(STRINGS), str(key)[:-1], f"{key}s", str(key).upper(), f" {key}"]
    names += [Raw(text) for text in ("5", "null", "true", "1.5", "[a]", "? a", "<<", "&k k", "*k", ".nan")]
    value = holder.pop(key)
    holder[chance.choice(names)] = value
    return tree


def replace_scalar(tree: Any, chance: random.Random) -> Any:
    return put(tree, _somewhere(tree, chance), scalar(chance))


def replace_type(tree: Any, chance: random.Random) -> Any:
    path = _somewhere(tree, chance)
    leaf = copy.deepcopy(at(tree, path)) if chance.random() < 0.5 else scalar(chance)
    return put(tree, path, structure(chance, leaf))


def swap(tree: Any, chance: random.Random) -> Any:
    one, other = _somewhere(tree, chance), _somewhere(tree, chance)
    value = copy.deepcopy(at(tree, other))
    return put(tree, one, value)


def insert(tree: Any, chance: random.Random) -> Any:
    """Put a known key where it may or may not belong."""
    known = [path for path in paths(tree) if isinstance(path[-1], str)]
    value = scalar(chance)
    if known and chance.random() < 0.5:
        value = copy.deepcopy(at(tree, chance.choice(known)))
    at(tree, _mapping(tree, chance))[chance.choice(KEYS)] = value
    return tree


def nudge(tree: Any, chance: random.Random) -> Any:
    """Change a number a little, or a lot."""
    numbers = [path for path in paths(tree) if isinstance(at(tree, path), int | float)]
    if not numbers:
        return replace_scalar(tree, chance)
    path = chance.choice(numbers)
    value = at(tree, path)
    changed = chance.choice((value + 1, value - 1, -value, value * 1e6, value / 3, int(value), float(value), value * 10**20))
    return put(tree, path, changed)


def dimensions(tree: Any, chance: random.Random) -> Any:
    """Give a search space at random, most of it nearly valid."""
    space = {}
    for number in range(chance.choice((1, 1, 2, 5, 40))):
        dimension: dict[str, Any] = {
            "type": chance.choice(("float", "int", "categorical", "ordered", "constant", "float", "int"))
        }
        for key in ("low", "high", "log", "step", "choices", "values", "value"):
            if chance.random() < 0.45:
                dimension[key] = _of_dimension(key, chance)
        space[chance.choice((f"x{number}", "learning_rate", "batch_size", chance.choice(STRINGS)))] = dimension
    tree["search_space"] = space
    return tree


def _of_dimension(key: str, chance: random.Random) -> Any:
    if chance.random() < 0.15:
        return scalar(chance)
    if key in ("choices", "values"):
        return [
            chance.choice((1, 2, 1.0, True, None, "a", "b", [1], {"k": 1}, 0.5)) for _ in range(chance.choice((0, 1, 2, 5, 300)))
        ]
    if key == "log":
        return chance.random() < 0.5
    return chance.choice((0, 1, -1, 2, 10, 0.1, 1e-9, 1e-320, 0.3, 1e15, 1e308, -1e308, 2**53, 2**63, 7, 1000))


def axes(tree: Any, chance: random.Random) -> Any:
    """Give `matrix` or `zip` at random."""

    def one() -> dict[str, Any]:
        return {chance.choice(DOTTED): _axis(chance) for _ in range(chance.choice((1, 1, 2, 3, 6)))}

    if chance.random() < 0.6:
        tree["matrix"] = one()
    else:
        tree["zip"] = [one() for _ in range(chance.choice((1, 1, 2, 4)))]
    return tree


def _axis(chance: random.Random) -> Any:
    kind = chance.randrange(6)
    if kind == 0:
        return scalar(chance)
    if kind == 1:
        return list(range(1, chance.choice((2, 10, 100, 10_000, 20_000))))
    if kind == 2:
        return ["random", "grid", "tpe", {"name": "asha"}, None][: chance.randrange(6)]
    return [chance.choice((1, 2, 3, "null", "sleep", scalar(chance), [1], {"a": 1})) for _ in range(chance.randrange(4))]


def crowd(tree: Any, chance: random.Random) -> Any:
    """Ask for far too much: seeds, adapters, samples, trials."""
    kind = chance.randrange(6)
    if kind == 0:
        tree["seeds"] = {"count": chance.choice((1000, 10_000, 10_001))}
    elif kind == 1:
        tree["adapters"] = ["serial"] * chance.choice((30, 400, 3000))
    elif kind == 2:
        tree["sampler"], tree["configurations"] = "fixed", {"sample": chance.choice((1000, 100_000))}
    elif kind == 3:
        tree["matrix"] = {"budget.trials": list(range(1, chance.choice((100, 3000, 10_001))))}
    elif kind == 4:
        tree["sampler"] = "grid"
        tree["search_space"] = {f"x{number}": {"type": "int", "low": 1, "high": 10} for number in range(chance.choice((3, 5, 9)))}
    else:
        tree["seeds"] = list(range(chance.choice((500, 20_000))))
    return tree


def strategies(tree: Any, chance: random.Random) -> Any:
    """Name samplers, pruners, workloads, adapters and meters that are there or not, with options that fit or not."""
    key = chance.choice(("sampler", "pruner", "workload", "power", "adapters", "objective", "carbon", "prices", "include"))
    names: dict[str, tuple[Any, ...]] = {
        "sampler": (
            "random",
            "grid",
            "fixed",
            "default",
            "tpe",
            "gp",
            "cmaes",
            "sobol",
            "bore",
            "cqr",
            "rea",
            "hyperband",
            "pbt",
        ),
        "pruner": ("none", "median", "asha", "hyperband", "scripted"),
        "workload": ("null", "sleep", "surrogate", "faulty", "mnist_mlp"),
        "power": ("auto", "rapl", "nvml", "model", "constant", "replay", "command", "codecarbon", "prometheus", "none"),
        "adapters": ("serial", "optuna", "ray-tune", "syne-tune", "katib"),
    }
    name = chance.choice((*names.get(key, ()), *STRINGS))
    options = {chance.choice(KEYS): scalar(chance) for _ in range(chance.randrange(3))}
    value: Any = {"name": name, **options}
    if key == "power":
        value = {"meter": name, "options": options}
    elif key in ("workload", "adapters"):
        value = {"name": name, "options": options}
    elif key in ("objective", "carbon"):
        value = options
    elif key in ("prices", "include"):
        value = name
    tree[key] = [value] if key == "adapters" else value
    return tree


CHANGES: dict[str, Change] = {
    "drop": drop,
    "double": double,
    "rename": rename,
    "scalar": replace_scalar,
    "type": replace_type,
    "swap": swap,
    "insert": insert,
    "nudge": nudge,
    "dimensions": dimensions,
    "axes": axes,
    "crowd": crowd,
    "strategies": strategies,
}
