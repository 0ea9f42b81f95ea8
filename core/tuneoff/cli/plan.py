"""`tuneoff plan`: what a file would run, and what not and why. Starts nothing."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from tuneoff.cli.output import columns, write, write_json
from tuneoff.cli.selection import add_file, add_overrides, overridden_plan

if TYPE_CHECKING:
    from tuneoff.matrix.plan import Plan, PlannedRun

NAME = "plan"
HELP = "show every run of a file with its id, the reason of each skip, and the total budget; starts nothing"
EXAMPLE = "tuneoff plan benchmarks/digits.yaml"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_file(parser)
    add_overrides(parser)
    parser.add_argument("--json", action="store_true", help="write the plan as JSON")


def execute(arguments: argparse.Namespace) -> int:
    plan = overridden_plan(arguments.file, adapters=arguments.adapters, trials=arguments.trials, seeds=arguments.seeds)
    if arguments.json:
        write_json(plan.to_json())
    else:
        write(f"{_table(plan)}\n\n{_summary(plan)}")
    return 0


def _table(plan: Plan) -> str:
    names = list(dict.fromkeys(name for run in plan.runs for name in run.spec.experiment.variant if name != "sampler"))
    header = ("run", "adapter", "platform", "seed", "sampler", "pruner", *names, "trials", "epochs", "")
    rows = []
    for run in plan.runs:
        experiment = run.spec.experiment
        rows.append(
            (
                run.run_id,
                run.label,
                run.spec.platform,
                str(run.spec.seed),
                experiment.sampler.name,
                experiment.pruner.name,
                *(str(experiment.variant.get(name, "")) for name in names),
                str(experiment.budget.trials),
                str(experiment.budget.epochs_per_trial),
                _remark(run),
            )
        )
    return columns(header, rows)


def _remark(run: PlannedRun) -> str:
    if run.skip_reason is not None:
        return f"skipped: {run.skip_reason}"
    return "warm-up" if run.spec.warm_up else ""


def _summary(plan: Plan) -> str:
    from tuneoff.report.progress import duration

    totals = plan.totals
    warm_ups = f", {totals.warm_ups} warm-ups" if totals.warm_ups else ""
    return (
        f"{totals.runs} runs{warm_ups}, {totals.skipped} skipped; at most {totals.trials} trials, {totals.epochs} epochs, "
        f"{duration(totals.seconds_at_most)} by the timeouts (plan {plan.plan_id})"
    )
