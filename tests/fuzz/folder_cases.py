"""Damage a copy of a real results folder, ask every reader of it, and hold `verify` to what was damaged."""

from __future__ import annotations

import importlib
import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

from fuzz import oracle
from fuzz.damage import damage
from fuzz.sandbox import Answer, Main, Place, call_forked
from fuzz.sources import COMPARE, RESULTS, copy_source
from fuzz.touched import touched

UNDAMAGED_SHARE = 0.04  # of the cases: these must be VERIFIED
STATUS = (
    ["watch", "--runs", RESULTS],
    ["watch", "--runs", RESULTS, "--json"],
    ["watch", RESULTS, "--declared"],
    ["watch", RESULTS, "--declared", "--json"],
)
VERIFY = ["verify", RESULTS]
EXPORT = (
    ["export", RESULTS, "--format", "csv"],
    ["export", RESULTS, "--format", "json", "--output", "tables"],
    ["export", RESULTS, "--format", "parquet", "--output", "tables"],
)
BUNDLE = (["bundle", RESULTS, "--output", "b.tar.gz"], ["bundle", RESULTS, "--output", "b.tar.gz", "--allow-unverified"])
RESUME = [*COMPARE, "--resume"]


def ask(sources: Path, place: Place, chance: random.Random, main: Main | None = None) -> list[str]:
    """Damage a folder, ask all readers, at last resume the matrix on it, and return what is wrong with the answers.

    `main`: another command line than tuneoff's, to test the oracle itself.
    """
    source = chance.choice(sorted(path for path in sources.iterdir() if path.is_dir()))
    copy_source(source, place.work, place.temporary)
    results = place.work / RESULTS
    done = [] if chance.random() < UNDAMAGED_SHARE else damage(results, chance)
    what = touched(source / RESULTS, results)
    oracle.seen(f"of {source.name}", f"{source.name}: {'; '.join(done) or 'nothing'}")
    found = []
    for argv in (*chance.sample(STATUS, 2), VERIFY, [*VERIFY, "--json"], *chance.sample(EXPORT, 1), *chance.sample(BUNDLE, 1)):
        answer = call_forked(main or start_nothing, argv, place, may_start_processes=True)
        found += oracle.failures(_command(argv), answer, _verdict(answer, done, what))
    return found + oracle.failures("compare", call_forked(main or start_nothing, RESUME, place, may_start_processes=True))


def _verdict(answer: Answer, done: Sequence[str], what: Sequence[str]) -> list[str]:
    """Hold the word of `verify` to what was damaged, and what `bundle` packs as verified."""
    if answer.argv[0] == "bundle" and "--allow-unverified" not in answer.argv and answer.code in (0, 1):
        if what and answer.code == 0:
            return [f"bundled as verified, but changed were: {', '.join(what[:5])}"]
        return ["an undamaged folder is not bundled"] if not done and answer.code == 1 else []
    if answer.argv[0] != "verify" or answer.code not in (0, 1):
        return []
    says = _says_verified(answer)
    if says != (answer.code == 0):
        return [f"exit code {answer.code}, but its word is {'VERIFIED' if says else 'NOT VERIFIED'}"]
    if not done and not says:
        return ["an undamaged folder is not VERIFIED"]
    if what and says:
        return [f"VERIFIED, but changed were: {', '.join(what[:5])}"]
    if "--json" not in answer.argv:
        oracle.seen(f"{'touched' if what else 'not touched'}, {'VERIFIED' if says else 'NOT VERIFIED'}")
    return []


def _says_verified(answer: Answer) -> bool:
    if "--json" in answer.argv:
        try:
            return bool(json.loads(answer.out)["verified"])
        except (ValueError, KeyError, TypeError):
            return False
    return any(line.startswith("VERIFIED") for line in answer.out.splitlines())


def start_nothing(argv: Sequence[str]) -> int:
    """Call the command line; a run that would start ends it, with success."""
    main = importlib.import_module("tuneoff.cli.main").main
    execute = importlib.import_module("tuneoff.run.execute")

    def would_run(*_: Any, **__: Any) -> NoReturn:
        raise SystemExit(0)

    setattr(execute, "supervise", would_run)  # noqa: B010
    return int(main(argv))


def _command(argv: Sequence[str]) -> str:
    return " ".join([argv[0], *(word for word in argv[2:] if word not in ("--output", "tables", "--format"))])
