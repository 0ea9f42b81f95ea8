"""`tuneoff verify-space`: whether every adapter of a file draws from the same search space, by tests on its own draws."""

from __future__ import annotations

import argparse
from dataclasses import replace

from tuneoff.base.output import note, write, write_json
from tuneoff.cli.selection import add_adapters, add_file, check_something_runs, overridden_plan

NAME = "verify-space"
HELP = (
    "test whether every framework of a file draws from the same search space: bounds, distributions, independence, mapping, seeds"
)
EXAMPLE = "tuneoff verify-space digits --adapter serial --draws 1000"
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
    from tuneoff.trust.space_test.judgement_tables import exit_code, text, to_json
    from tuneoff.trust.space_test.statistics import FALSE_DISCOVERY_RATE
    from tuneoff.trust.space_test.targets import targets
    from tuneoff.trust.space_test.verify import verify

    _check(arguments)
    plan = overridden_plan(arguments.file, adapters=arguments.adapters)
    found = targets(plan, arguments.draws)
    check_something_runs(replace(plan, runs=tuple(target.run for target in found)))
    outcomes = verify(plan, found, draws=arguments.draws, seed=arguments.seed, seconds=arguments.timeout, tell=note)
    code = exit_code(outcomes)
    if arguments.json:
        about = {"file": str(arguments.file), "draws": arguments.draws, "false_discovery_rate": FALSE_DISCOVERY_RATE}
        write_json({**about, "exit_code": code, "adapters": [to_json(outcome) for outcome in outcomes]})
    else:
        write(text(outcomes))
    return code


def _check(arguments: argparse.Namespace) -> None:
    from tuneoff.errors import ExperimentError

    if arguments.draws < FEWEST_DRAWS:
        raise ExperimentError(f"--draws must be at least {FEWEST_DRAWS}, but got {arguments.draws}; fewer show nothing")
    if arguments.seed < 0:
        raise ExperimentError(f"--seed must be at least 0, but got {arguments.seed}")
    if not 0 < arguments.timeout < float("inf"):
        raise ExperimentError(f"--timeout must be a number of seconds above 0, but got {arguments.timeout:g}")
