"""`tuneoff plan`: what a file would run, and what not and why. Starts nothing."""

from __future__ import annotations

import argparse
import contextlib
import time
from collections.abc import Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from tuneoff.base.format import counted, duration_text
from tuneoff.base.output import filled_columns, write, write_json
from tuneoff.cli.folders import plans
from tuneoff.cli.selection import add_file, add_overrides, plan_of
from tuneoff.errors import TuneoffError

if TYPE_CHECKING:
    from tuneoff.experiment.plan import Plan, PlannedRun

NAME = "plan"
HELP = "show every run of a file with its id, the reason of each skip, and the total budget; starts nothing"
EXAMPLE = "tuneoff plan digits"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_file(parser)
    add_overrides(parser)
    parser.add_argument(
        "--from",
        dest="earlier",
        metavar="DIR",
        type=Path,
        help="results folder whose measured spreads give the detectable differences in units; default: none",
    )
    parser.add_argument("--json", action="store_true", help="write the plan as JSON")


def execute(arguments: argparse.Namespace) -> int:
    from tuneoff.base.targets import load_target
    from tuneoff.experiment.accounting.declared import carbon_line, prices_line
    from tuneoff.judge.answers.compute import answers
    from tuneoff.judge.detectable import detectable_lines, spreads
    from tuneoff.judge.results import read_results
    from tuneoff.run.environments import environment_lines
    from tuneoff.run.uncharged import uncharged_lines

    plan = plan_of(arguments)
    if arguments.json:
        write_json(plan.to_json())
        return 0
    labels = plan.label_texts
    lines = [_table(plan), ""]
    placements = ((labels[run.label], load_target(run.spec.adapter_target).placement(run.spec)) for run in plan.to_run)
    lines += dict.fromkeys(f"{label}: {placement}" for label, placement in placements if placement is not None)
    lines += environment_lines([run.spec for run in plan.to_run])
    lines += [plan.power.line, carbon_line(plan.accounting), prices_line(plan.accounting), *uncharged_lines(plan, time.time_ns())]
    earlier: Path | None = arguments.earlier
    measured = (spreads(answers(read_results(earlier))), str(earlier)) if earlier is not None else ()
    write("\n".join([*lines, *detectable_lines(plan, *measured), _summary(plan)]))
    return 0


def _table(plan: Plan) -> str:
    from tuneoff.experiment.names import variant_text

    labels = plan.label_texts
    samplers = {run.run_id: run.spec.experiment.sampler.name for run in plan.runs}
    rows = []
    for run in plan.runs:
        experiment = run.spec.experiment
        rows.append(
            (
                run.run_id,
                labels[run.label],
                run.spec.platform,
                experiment.sampler.name,
                experiment.pruner.name,
                variant_text(experiment.variant),
                str(run.spec.seed),
                f"{experiment.budget.trials}x{experiment.budget.epochs_per_trial}",
                _remark(run, samplers),
            )
        )
    header = ("run", "adapter", "platform", "sampler", "pruner", "variant", "seed", "budget", "")
    table = filled_columns(header, rows, optional=("platform", "pruner", "variant"))
    return f"{table}\nbudget: trials x epochs; =: the same algorithm, so not run again"


def _remark(run: PlannedRun, samplers: Mapping[str, str]) -> str:
    if run.same_as is not None:
        return f"= {samplers[run.same_as]}"
    if run.skip_reason is not None:
        return f"skipped: {run.skip_reason}"
    from tuneoff.experiment.names import special_part

    return special_part(run.spec)


def _summary(plan: Plan) -> str:
    from tuneoff.base.format import duration_text

    totals = plan.totals
    runs = [counted(totals.runs, "run")]
    runs += [counted(totals.warm_ups, "warm-up")] if totals.warm_ups else []
    runs += [f"{totals.skipped} skipped"] if totals.skipped else []
    budget = ""
    if totals.runs:
        budget = (
            f"; at most {counted(totals.trials, 'trial')} and {counted(totals.epochs, 'epoch')}; "
            f"{expected_duration(plan)} ({duration_text(totals.seconds_at_most)} only if every timeout strikes)"
        )
    return f"{', '.join(runs)}{budget}; plan {plan.plan_id}, analysis {plan.analysis_digest[:16]}"


def expected_duration(plan: Plan, remaining: Sequence[PlannedRun] | None = None, results: Path | None = None) -> str:
    """Return how long a matrix will take, by the newest folder that has runs of it by each framework.

    `remaining`: the runs that are still to come, by default all. `results`: the matrix's folder, which is asked first.
    """
    from tuneoff.measure.stored import read_runs
    from tuneoff.tell.live.state import RuntimeEstimator

    estimate, labels = RuntimeEstimator(plan.to_run), {run.run_id: run.label for run in plan.to_run}
    runs = plan.to_run if remaining is None else remaining
    to_come = [run.run_id for run in runs if not run.spec.copy]  # the copies of a job run at the same time
    needed = {labels[run_id] for run_id in to_come}
    with contextlib.suppress(TuneoffError):  # an earlier folder that cannot be read must not stop a new one
        for folder, earlier in chain([(results, plan)] if results is not None else [], plans()):
            if not needed <= {labels.get(run.run_id) for run in earlier.to_run}:
                continue
            done = [record for record in read_runs(folder) if record.status == "done" and record.run_id in labels]
            took = {record.run_id: seconds for record in done if (seconds := estimate.taken(record)) is not None}
            total = estimate.seconds(to_come, took, None)
            if total is not None and needed <= {labels[run_id] for run_id in took}:
                return f"about {duration_text(total)}{' left' if folder == results else f', by {folder}'}"
    return f"how long it takes is known after the {'warm-ups' if plan.totals.warm_ups else 'first runs'}"
