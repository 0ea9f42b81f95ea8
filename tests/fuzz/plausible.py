"""Files of which each part may be right, with the greatest and least values that are: they get further than broken ones."""

from __future__ import annotations

import random
from typing import Any

from fuzz.bases import SPACE

COUNTS = (1, 1, 2, 3, 5, 10, 27, 100, 10_000, 10**6, 10**9)
SECONDS = (0.001, 0.5, 1, 60, 3600, 1e6, 1e9, 5e-324)
NUMBERS = (
    *(0, 1, -1, 0.1, 1e-9, 5e-324, 1e-300, 1e15, 2**53, 2**53 + 1, 2**63, 1e300, -1e300, 1.7e308, -1.7e308, 10**299),
    -(10**299),
)
RUNGS = ("first_rung_epochs", "reduction_factor")
OPTIONS = {"n_startup_trials": 3, "multivariate": True, "popsize": 4, "scramble": True, "gamma": 0.1, "random_fraction": 0.3}


def plausible(chance: random.Random) -> dict[str, Any]:
    """Return a file that may well be valid."""
    katib = {"name": "katib", "platform": "emulated"}
    tree: dict[str, Any] = {
        "workload": chance.choice(("null", "null", "null", "sleep", "surrogate", "faulty", "mnist_mlp")),
        "adapters": chance.sample(("serial", "optuna", "ray-tune", "syne-tune", katib), chance.randrange(1, 6)),
        "budget": {"trials": chance.choice(COUNTS[:8])},
    }
    parts = (_space, _budget, _workers, _timeouts, _strategies, _fixed, _axes, _charges, _others)
    for part in parts:
        if chance.random() < 0.35:
            part(tree, chance)
    return tree


def _space(tree: dict[str, Any], chance: random.Random) -> None:
    names = ("x", "y", "learning_rate", "batch_size", "hidden_width", "a" * 300, "class", "None")
    tree["search_space"] = {name: _dimension(chance) for name in chance.sample(names, chance.randrange(1, 4))}
    if tree["workload"] in ("mnist_mlp", "surrogate") and chance.random() < 0.5:
        tree["search_space"] = {"learning_rate": SPACE["learning_rate"]}


def _dimension(chance: random.Random) -> dict[str, Any]:
    kind = chance.choice(("float", "int", "categorical", "ordered", "constant"))
    if kind == "constant":
        return {"type": kind, "value": chance.choice((*NUMBERS, "a", None, [1, [2]], {"a": 1}, ""))}
    if kind in ("categorical", "ordered"):
        values = list(dict.fromkeys(chance.choice((*NUMBERS, "a", "b", None)) for _ in range(chance.randrange(1, 6))))
        return {"type": kind, "choices" if kind == "categorical" else "values": values}
    low, high = sorted(chance.choice(NUMBERS) for _ in range(2))
    if kind == "int":
        low, high = int(low), int(high)
    found: dict[str, Any] = {"type": kind, "low": low, "high": high}
    extra = chance.random()
    if extra < 0.3:
        found |= {"log": True, "low": max(low, 1 if kind == "int" else 5e-324)}
    elif extra < 0.6:
        steps = chance.choice((1, 2, 3, 10, 1000, 10**6))
        found["step"] = max(1, (high - low) // steps) if kind == "int" else (high / steps - low / steps) or 1.0
    return found


def _budget(tree: dict[str, Any], chance: random.Random) -> None:
    known = {"trials": COUNTS, "epochs_per_trial": COUNTS, "epochs_total": COUNTS, "wall_clock_seconds": SECONDS}
    tree["budget"] |= {name: chance.choice(values) for name, values in known.items() if chance.random() < 0.5}


def _workers(tree: dict[str, Any], chance: random.Random) -> None:
    known = {"count": COUNTS, "cpus": (0.001, 0.5, 1, 2.5, 64, 100_000), "memory_mb": (0.001, 1, 500, 1e6, 1e9, 5e-324)}
    tree["workers"] = {name: chance.choice(values) for name, values in known.items() if chance.random() < 0.5}


def _timeouts(tree: dict[str, Any], chance: random.Random) -> None:
    steps = ("trial", "silence", "deploy", "setup", "trials", "collect", "test", "metrics", "undeploy")
    tree["timeouts"] = {f"{step}_seconds": chance.choice(SECONDS) for step in steps if chance.random() < 0.3}
    tree["failures"] = {"retries": chance.choice((0, 0, 0, 1, 10**9)), "max_failed_trials": chance.choice((*COUNTS, None))}


def _strategies(tree: dict[str, Any], chance: random.Random) -> None:
    samplers = ("random", "grid", "default", "tpe", "gp", "cmaes", "sobol", "multivariate-tpe", "bore", "cqr", "rea")
    options = {name: value for name, value in OPTIONS.items() if chance.random() < 0.15}
    tree["sampler"] = {"name": chance.choice(samplers), **options}
    pruners: dict[str, tuple[str, ...]] = {"none": (), "median": ("first_epoch", "min_trials"), "asha": RUNGS}
    pruner = chance.choice(("none", "median", "asha", "hyperband"))
    names = pruners.get(pruner, (*RUNGS, "brackets"))
    tree["pruner"] = {"name": pruner, **{name: chance.choice((2, 3, *COUNTS)) for name in names if chance.random() < 0.3}}
    tree["budget"]["epochs_per_trial"] = chance.choice((9, 27, 10**9))


def _fixed(tree: dict[str, Any], chance: random.Random) -> None:
    tree |= {"sampler": "fixed", "search_space": {"x": {"type": "float", "low": 0, "high": 1}}}
    tree["configurations"] = {"sample": chance.choice((1, 5, 30, 1000)), "seed": chance.choice(COUNTS)}
    if chance.random() < 0.5:
        tree["configurations"] = [{"x": value} for value in (0, 0.5, 1, 5e-324, 1e-300)[: chance.randrange(1, 6)]]
    tree["budget"].pop("trials", None)
    tree["budget"]["epochs_per_trial"] = chance.choice(COUNTS)
    if chance.random() < 0.5:
        tree["pruner"] = "scripted"
        tree["stops"] = [{"index": number, "after_epoch": chance.choice(COUNTS[:6])} for number in range(chance.randrange(1, 3))]


def _axes(tree: dict[str, Any], chance: random.Random) -> None:
    lists: dict[str, list[Any]] = {
        "budget.epochs_per_trial": [1, 2, 3],
        "sampler": ["random", "default", "tpe"],
        "workers.count": [1, 10**9],
        "pruner": ["none", {"name": "asha"}, "median"],
        "workload.name": ["null", "sleep"],
        "objective.goal": [-1e308, 0, 1e308],
    }
    chosen: dict[str, list[Any]] = {name: values for name, values in lists.items() if chance.random() < 0.4} or {
        "budget.trials": [1, 2]
    }
    if chance.random() < 0.6:
        tree["matrix"] = chosen
    else:
        tree["zip"] = [{name: values[:2] for name, values in chosen.items()}]


def _charges(tree: dict[str, Any], chance: random.Random) -> None:
    tree["power"] = chance.choice(
        ("auto", "rapl", "model", "none", {"meter": "constant", "options": {"watts": 50}}, {"meter": "auto"})
    )
    tree["carbon"] = chance.choice(
        ("none", {"zone": "DEU"}, {"g_per_kwh": 100_000}, {"series": "series.csv"}, {"g_per_kwh": 5e-324})
    )
    tree["prices"] = chance.choice(("none", "prices.yaml"))


def _others(tree: dict[str, Any], chance: random.Random) -> None:
    tree["seeds"] = chance.choice(([0], [2**31], [2**63 - 1], list(range(100)), {"count": 50, "first": 10**18}))
    tree["name"] = chance.choice(("a", "a" * 100, "1.2_-", "con", "x-"))
    tree["warm_up"] = chance.random() < 0.5
    tree["analysis"] = {
        "margin_percent": chance.choice((0, 5, 1e308)),
        "confidence": chance.choice((5e-324, 0.5, 0.999999999999)),
    }
    if chance.random() < 0.2:
        tree["platform"] = chance.choice(("local", "emulated", "kubernetes", "x"))
