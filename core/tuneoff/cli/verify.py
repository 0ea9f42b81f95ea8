"""`tuneoff verify`: recompute every stored number from the raw events, samples and prices."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tuneoff.base.format import counted
from tuneoff.base.output import note, one_line, printable, write, write_json
from tuneoff.cli.bundle import LIMIT_MB, MEGABYTE, add_limit
from tuneoff.cli.folders import add_results, newest_folder
from tuneoff.errors import NOT_KNOWN, ResultsError

if TYPE_CHECKING:
    from tuneoff.trust.verify.results import Verification

NAME = "verify"
HELP = "recompute every stored number from the raw events, samples and prices, and name what differs"
EXAMPLE = "tuneoff verify"
DIFFERS, UNREADABLE = 1, ResultsError.exit_code  # the second: something has a format version that is not read
SHOWN = 20  # problems of one execution, and names in a list; --json has the first 500 of an execution


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_results(parser, "results folder, or a bundle; default: the newest folder under results/")
    add_limit(parser, LIMIT_MB)
    parser.add_argument("--json", action="store_true", help="write JSON: what was checked, and one object per problem")


def execute(arguments: argparse.Namespace) -> int:
    from tuneoff.trust.bundle.manifest import RESULTS
    from tuneoff.trust.bundle.opened import unpacked
    from tuneoff.trust.verify.results import verify

    results: Path = arguments.results or newest_folder(needs_runs=True)
    show = _show_progress if sys.stderr.isatty() else None
    if results.is_file():
        with unpacked(results, arguments.limit_mb * MEGABYTE) as (_, folder):
            verification = replace(verify(folder / RESULTS, show), results=results)
    else:
        verification = verify(results, show)
    other = next((problem for problem in verification.problems if problem.check == "version"), None)
    code = 0 if verification.is_verified else DIFFERS if other is None else UNREADABLE
    code = NOT_KNOWN if verification.is_verified and _not_known(verification) else code
    if arguments.json:
        write_json(_to_json(verification, code))
    else:
        write("\n".join(printable(line) for line in _lines(verification)))
    if other is not None and arguments.json:  # else it is among the lines
        note(f"tuneoff: {printable(other.line)}")
    return code


def _lines(verification: Verification) -> Iterator[str]:
    """Yield each problem, what else a reader must know, and last the answer."""
    written: Counter[str] = Counter()
    left_out: Counter[str] = Counter({outcome.where: outcome.left_out for outcome in verification.outcomes if outcome.left_out})
    for problem in verification.problems:
        if written[problem.where] < SHOWN:
            written[problem.where] += 1
            yield one_line(problem.line)
            if problem.shown_by is not None:
                yield from (f"    {line}" for line in problem.shown_by.drawing())
        else:
            left_out[problem.where] += 1
    for where, count in left_out.items():
        yield f"{where}: and {counted(count, 'further problem')}; --json shows more"
    yield from _notes(verification)
    checked = _checked(verification)
    executions = f" ({counted(checked['executions'], 'execution')})" if checked["executions"] != checked["runs"] else ""
    what = (
        f"{counted(checked['runs'], 'run')}{executions}, {counted(checked['trials'], 'trial')}, "
        f"{counted(checked['events'], 'event')}, {counted(checked['samples'], 'sample')}, {counted(checked['values'], 'value')}"
    )
    folder = verification.results.resolve()
    if verification.is_verified and (reason := _not_known(verification)):
        yield f"NOT KNOWN: {printable(reason)}; {folder}"
    elif verification.is_verified:
        yield f"VERIFIED: {what}; integers are equal, decimal numbers to {_tolerance():g}; {folder}"
    else:
        defects = Counter(problem.where for problem in verification.problems)
        problems = counted(verification.problem_count, "problem")
        yield f"NOT VERIFIED: {problems} in {counted(len(defects), 'place')}; checked: {what}; {folder}"


def _not_known(verification: Verification) -> str:
    return verification.not_known if _checked(verification)["executions"] else "no run has a record"


def _notes(verification: Verification) -> Iterator[str]:
    from tuneoff.trust.verify.execution import STATED
    from tuneoff.trust.verify.planned import STATED as STATED_BY_PLAN

    yield from (f"note: {text}" for text in verification.notes)
    yield from (f"note: {text}: {places}" for text, places in _places(verification, "notes"))
    if any(outcome.status is not None for outcome in verification.outcomes):
        plan = f"as matrix.json does: {', '.join(STATED_BY_PLAN)}"
        yield f"not recomputable, taken as end.json states it: {', '.join(STATED)}; {plan}"
    for text, places in _places(verification, "stated"):
        yield f"not recomputable, taken as end.json states it: {one_line(text)}: {places}"
    if verification.not_begun:
        yield f"not begun: {_listed([run.name for run in verification.not_begun])}"
    for run in verification.skipped:
        yield f"skipped: {run.name}: {one_line(run.skip_reason or '')}"


def _places(verification: Verification, name: str) -> Iterator[tuple[str, str]]:
    """Yield each of the texts that executions have under a name, with where."""
    places: dict[str, list[str]] = {}
    for outcome in verification.outcomes:
        for text in getattr(outcome, name):
            places.setdefault(text, []).append(outcome.where)
    yield from ((text, _listed(where)) for text, where in places.items())


def _listed(names: list[str]) -> str:
    more = len(names) - SHOWN
    return ", ".join(names[:SHOWN]) + (f" and {more} more" if more > 0 else "")


def _checked(verification: Verification) -> dict[str, int]:
    read = [outcome for outcome in verification.outcomes if outcome.status is not None]
    return {
        "runs": len({outcome.run_id for outcome in read}),
        "executions": len(read),
        "trials": sum(outcome.trials for outcome in read),
        "events": sum(outcome.events for outcome in read),
        "samples": sum(outcome.samples for outcome in read),
        "values": sum(outcome.values for outcome in read),
    }


def _to_json(verification: Verification, code: int) -> dict[str, Any]:
    from tuneoff.trust.verify.execution import STATED
    from tuneoff.trust.verify.planned import STATED as STATED_BY_PLAN

    return {
        "results": str(verification.results.resolve()),
        "verified": verification.is_verified if code != NOT_KNOWN else None,
        "exit_code": code,
        "tolerance": _tolerance(),
        "checked": _checked(verification),
        "problem_count": verification.problem_count,
        "problems": [problem.to_json() for problem in verification.problems],
        "notes": [
            *({"where": "", "text": note} for note in verification.notes),
            *({"where": outcome.where, "text": note} for outcome in verification.outcomes for note in outcome.notes),
        ],
        "not_recomputable": {
            "everywhere": list(STATED),
            "plan": list(STATED_BY_PLAN),
            "executions": {outcome.where: outcome.stated for outcome in verification.outcomes if outcome.stated},
        },
        "not_begun": [{"run_id": run.run_id, "name": run.name} for run in verification.not_begun],
        "skipped": [{"run_id": run.run_id, "name": run.name, "reason": run.skip_reason} for run in verification.skipped],
    }


def _tolerance() -> float:
    from tuneoff.trust.verify.findings import TOLERANCE

    return TOLERANCE


def _show_progress(done: int, total: int) -> None:
    """Rewrite one line on the terminal; it is gone at the end."""
    text = f"verified {done} of {counted(total, 'execution')}" if done < total else ""
    print(f"\r\x1b[K{text}", end="", file=sys.stderr, flush=True)
