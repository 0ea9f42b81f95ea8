"""Make one fuzzed experiment file and ask the command line about it; nothing is ever run."""

from __future__ import annotations

import contextlib
import copy
import json
import os
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

import yaml

from fuzz import bases, octets, oracle
from fuzz.documents import DOCUMENTS
from fuzz.odd_files import ODD_FILES
from fuzz.plausible import plausible
from fuzz.sandbox import Place, call_forked, call_real
from fuzz.trees import OF_FILES
from fuzz.values import STRINGS, scalar, written

REAL_SHARE = 0.02  # of the cases are run as a user does; each costs a start of Python
ADAPTERS = (
    *("serial", "optuna", "ray-tune", "syne-tune", "katib", "serial@local", "katib@emulated", "plane", "a@", "@b", ""),
    *(",", "os:system"),
)
NUMBERS = ("0", "1", "3", "-1", "10000000", "9" * 30, "9" * 400, "9" * 5000, "1.5", "x", "", "١", "0x10", "1_0")
SHORT = tuple(value for value in STRINGS if len(value) < 4000 and "\x00" not in value and "\ud800" not in value)  # as arguments


def ask(place: Place, chance: random.Random) -> list[str]:
    """Make a file, ask about it, and return what is wrong with the answer."""
    bases.write_neighbours(place.work)
    kind, name = make_file(place.work, chance)
    command, argv = arguments(name, chance)
    oracle.seen(kind, f"{kind}; {argv}")
    if chance.random() < REAL_SHARE and command in ("plan", "explain", "other"):
        return oracle.failures(f"{command} (a process of its own)", call_real(argv, place))
    return oracle.failures(command, call_forked(_main, argv, place, may_start_processes=command == "doctor"))


def _main(argv: Sequence[str]) -> int:
    """Call the command line; what would start the first run ends here, with success."""
    from tuneoff.cli.main import main
    from tuneoff.run import execute

    def would_run(*_: Any, **__: Any) -> NoReturn:
        raise SystemExit(0)

    execute.execute = would_run
    return main(argv)


def make_file(folder: Path, chance: random.Random) -> tuple[str, str]:
    """Write a fuzzed file and return what was done and the file's name."""
    (folder / "other.yaml").write_text("include: experiment.yaml\n")
    kind = chance.random()
    name = "experiment.yaml"
    if kind < 0.05:
        odd = chance.choice(sorted(ODD_FILES))
        ODD_FILES[odd](folder / name, chance)
        return f"odd: {odd}", name
    if kind < 0.17:
        os.mkfifo(folder / "pipe")
        (folder / "endless").symlink_to("/dev/zero")
        for level in range(1, 8):
            following = f"include: [{', '.join([f'level{level + 1}.yaml'] * 10)}]\n" if level < 7 else "warm_up: false\n"
            (folder / f"level{level}.yaml").write_text(following)
        document = chance.choice(sorted(DOCUMENTS))
        (folder / name).write_bytes(DOCUMENTS[document](chance).encode("utf-8", "surrogatepass"))
        return f"document: {document}", name
    if kind < 0.3:
        (folder / name).write_text(written(plausible(chance)))
        return "plausible", name
    if kind < 0.6:
        return _structural(folder, chance), name
    if kind < 0.65:
        return _neighbour(folder, chance), name
    if kind < 0.68:
        return "name", _odd_name(folder, chance)
    return _textual(folder / name, chance), name


def _structural(folder: Path, chance: random.Random) -> str:
    tree = plausible(chance) if chance.random() < 0.5 else copy.deepcopy(chance.choice(bases.trees()))
    done = [chance.choice(sorted(OF_FILES)) for _ in range(chance.choice((1, 1, 1, 2, 3, 5)))]
    for change in done:
        tree = (
            OF_FILES[change](tree, chance, scalar) if isinstance(tree, dict) else tree
        )  # else the whole file is something else by now
    text = written(tree)
    if chance.random() < 0.3 and isinstance(tree, dict):  # one line per key of the file, as people write
        text = "".join(f"{json.dumps(str(key))}: {written(value)}\n" for key, value in tree.items())
    elif chance.random() < 0.2:
        with contextlib.suppress(yaml.YAMLError, RecursionError):  # Raw has no block style
            text = yaml.safe_dump(tree)
    (folder / "experiment.yaml").write_text(text, encoding="utf-8", errors="surrogatepass")
    return f"structure: {done[0]}"


def _textual(path: Path, chance: random.Random) -> str:
    content, other = (chance.choice(bases.texts()).encode() for _ in range(2))
    done = [chance.choice(sorted(octets.CHANGES)) for _ in range(chance.choice((1, 1, 2, 4)))]
    for change in done:
        content = octets.CHANGES[change](content, other, chance)
    path.write_bytes(content)
    return f"text: {done[0]}"


def _neighbour(folder: Path, chance: random.Random) -> str:
    """Leave the file valid and break what it names: the series, the prices, an included file."""
    name = chance.choice(("series.csv", "prices.yaml", "digits.yaml"))
    tree = {
        **bases.LEAST,
        "carbon": {"series": "series.csv"},
        "prices": "prices.yaml",
        "include": "digits.yaml",
        "sampler": "random",
    }
    (folder / "experiment.yaml").write_text(json.dumps(tree))
    path = folder / name
    content = path.read_bytes()
    path.unlink()
    if chance.random() < 0.25:
        odd = chance.choice(sorted(ODD_FILES))
        ODD_FILES[odd](path, chance)
        return f"neighbour: {odd}"
    if name == "prices.yaml" and chance.random() < 0.6:
        prices = yaml.safe_load(content)
        change = chance.choice(("drop", "double", "rename", "scalar", "type", "swap", "nudge"))
        path.write_text(written(OF_FILES[change](prices, chance, scalar)))
        return f"neighbour: {change}"
    change = chance.choice(sorted(octets.CHANGES))
    path.write_bytes(octets.CHANGES[change](content, bases.SERIES.encode(), chance))
    return f"neighbour: {change}"


def _odd_name(folder: Path, chance: random.Random) -> str:
    """Return a name that is not a name of a file, or one that is seldom used for a file that is there."""
    name = chance.choice(
        (
            *SHORT,
            "experiment.yaml/",
            "experiment.yaml/x",
            "nowhere.yaml",
            "a\nb.yaml",
            "é.yaml",
            "\udcff.yaml",
            "x.json",
            "a" * 255,
        )
    )
    with contextlib.suppress(OSError, ValueError):
        if not name.startswith(("/", "..", "~")):
            (folder / name).write_text(json.dumps(bases.LEAST))
    return name


def arguments(name: str, chance: random.Random) -> tuple[str, list[str]]:
    """Return what is asked: mostly the plan, sometimes with overrides, sometimes another reader of the same file."""
    kind = chance.random()
    if kind < 0.55:
        return "plan", ["plan", name]
    if kind < 0.7:
        return "plan", ["plan", name, "--json"]
    if kind < 0.82:
        return "plan", ["plan", name, *_overrides(chance)]
    if kind < 0.91:
        return "compare", ["compare", name, *(_overrides(chance) if chance.random() < 0.5 else []), *_flags(chance)]
    if kind < 0.95:
        one = ["--adapter", chance.choice(ADAPTERS), "--seed", chance.choice(NUMBERS), "--trials", chance.choice(NUMBERS)]
        return "run", ["run", name, *one[: chance.choice((2, 4, 6))], *_flags(chance)]
    if kind < 0.96:
        return "doctor", ["doctor", name]
    if kind < 0.97:
        return "explain", ["explain", "--schema", *chance.choice((["experiment"], ["run"], ["prices"], [name]))]
    commands = ("plan", "watch", "verify", "export", "list", "status", "--version", "--debug", "", name)
    return "other", [
        chance.choice(commands),
        *(chance.choice((name, *SHORT, "--json", "--output", *NUMBERS)) for _ in range(chance.randrange(4))),
    ]


def _overrides(chance: random.Random) -> list[str]:
    found = []
    if chance.random() < 0.6:
        found += ["--adapter", *(chance.choice(ADAPTERS) for _ in range(chance.choice((1, 1, 3))))]
    if chance.random() < 0.5:
        found += ["--trials", chance.choice(NUMBERS)]
    if chance.random() < 0.5:
        found += ["--seeds", *(chance.choice(NUMBERS) for _ in range(chance.choice((1, 2))))]
    return found


def _flags(chance: random.Random) -> list[str]:
    return [flag for flag in ("--json", "--resume") if chance.random() < 0.2]
