"""`tuneoff verify-space`: whether every adapter of a file draws from the same search space, by tests on its own draws."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from tuneoff.base.format import counted
from tuneoff.base.output import columns, note, one_line, write, write_json
from tuneoff.cli.selection import add_adapters, add_file, check_something_runs, overridden_plan

if TYPE_CHECKING:
    from tuneoff.trust.space_test.verify import TargetJudgement

NAME = "verify-space"
HELP = (
    "test whether every framework of a file draws from the same search space: bounds, distributions, independence, mapping, seeds"
)
EXAMPLE = "tuneoff verify-space digits --adapter serial --draws 1000"
REJECTED, NOT_KNOWN = 1, 7
DRAWS, FEWEST_DRAWS = 5000, 400
SECONDS = 300.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_file(parser)
    add_adapters(parser)
    parser.add_argument(
        "--draws",
        metavar="N",
        type=int,
        default=DRAWS,
        help=f"configurations of each adapter, from {FEWEST_DRAWS}; default: {DRAWS}",
    )
    parser.add_argument("--seed", metavar="N", type=int, default=0, help="the first of four seeds; default: 0")
    parser.add_argument(
        "--timeout",
        metavar="SECONDS",
        type=float,
        default=SECONDS,
        help=f"limit of each process that draws (five per adapter); default: {SECONDS:g}",
    )
    parser.add_argument("--json", action="store_true", help="write JSON: every test of every adapter with its p-value")


def execute(arguments: argparse.Namespace) -> int:
    from tuneoff.trust.space_test.targets import targets
    from tuneoff.trust.space_test.verify import verify

    _check(arguments)
    plan = overridden_plan(arguments.file, adapters=arguments.adapters)
    found = targets(plan, arguments.draws)
    check_something_runs(replace(plan, runs=tuple(target.run for target in found)))
    outcomes = verify(plan, found, draws=arguments.draws, seed=arguments.seed, seconds=arguments.timeout, tell=note)
    code = exit_code(outcomes)
    if arguments.json:
        write_json(_to_json(outcomes, arguments, code))
    else:
        write(_text(outcomes))
    return code


def exit_code(outcomes: Sequence[TargetJudgement]) -> int:
    """Return 0 where each adapter is accepted, or was skipped for a stated reason; not where all were skipped."""
    verdicts = {item.judgement.verdict for item in outcomes if item.judgement is not None}
    return NOT_KNOWN if not verdicts else REJECTED if verdicts != {"accepted"} else 0


def _check(arguments: argparse.Namespace) -> None:
    from tuneoff.errors import ExperimentError

    if arguments.draws < FEWEST_DRAWS:
        raise ExperimentError(f"--draws must be at least {FEWEST_DRAWS}, but got {arguments.draws}; fewer show nothing")
    if arguments.seed < 0:
        raise ExperimentError(f"--seed must be at least 0, but got {arguments.seed}")
    if not 0 < arguments.timeout < float("inf"):
        raise ExperimentError(f"--timeout must be a number of seconds above 0, but got {arguments.timeout:g}")


def _text(outcomes: Sequence[TargetJudgement]) -> str:
    from tuneoff.trust.space_test.judgement_tables import HEADER, lines, rows

    table = [row for outcome in outcomes for row in rows(outcome)]
    parts = [columns(HEADER, table), ""] if table else []
    parts += [
        one_line(line) if not line.startswith(" ") else f"  {one_line(line)}" for outcome in outcomes for line in lines(outcome)
    ]
    verdicts = [outcome.judgement.verdict for outcome in outcomes if outcome.judgement is not None]
    skipped = len(outcomes) - len(verdicts)
    accepted = verdicts.count("accepted")
    answer = "ACCEPTED: no draw speaks against core's space" if accepted == len(verdicts) else "NOT ACCEPTED"
    answer = answer if verdicts else "NOT KNOWN: nothing was drawn"
    more = f", {skipped} skipped" if skipped else ""
    return "\n".join([*parts, f"{answer}: {accepted} of {counted(len(verdicts), 'framework')} accepted{more}"])


def _to_json(outcomes: Sequence[TargetJudgement], arguments: argparse.Namespace, code: int) -> dict[str, object]:
    from tuneoff.trust.space_test.judgement_tables import to_json
    from tuneoff.trust.space_test.statistics import FALSE_DISCOVERY_RATE

    return {
        "file": str(arguments.file),
        "draws": arguments.draws,
        "false_discovery_rate": FALSE_DISCOVERY_RATE,
        "exit_code": code,
        "adapters": [to_json(outcome) for outcome in outcomes],
    }
