"""Verify `matrix.json`, its ids and digests; that what it planned is there; that runs are as it says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from tuneoff.base.files import read_regular
from tuneoff.base.identity import own_copy
from tuneoff.base.json_values import plain
from tuneoff.base.layout import ACCOUNTING, PLAN, RUNS
from tuneoff.errors import ExperimentError, ResultsError, TuneoffError
from tuneoff.experiment.accounting.declared import Accounting, frozen
from tuneoff.experiment.plan import FORMAT_VERSION, LAST_READERS, OBSOLETE, RULES, WARM_UP_BLOCK, Plan, PlannedRun
from tuneoff.experiment.spec import run_spec_from_json
from tuneoff.measure.derived import Derived
from tuneoff.record.end import ExecutionEnd
from tuneoff.trust.verify.findings import Findings, VerifiedExecution, read_object

STATED = ("name", "path", "content", "labels")  # of the plan: nothing else says them


class VerificationTask(NamedTuple):
    """One execution to be verified: its folder, the path of that in the results folder, and what the plan says of its run.

    None: there is no such plan, or it froze nothing.
    """

    folder: Path
    where: str
    analysis_digest: str | None
    accounting: Accounting | None


@dataclass(slots=True, kw_only=True)
class PlanFindings(Findings):
    """The plan of a results folder and what is wrong with it; `is_read` is False where it cannot be read."""

    where: str = PLAN
    is_read: bool = False
    runs: Sequence[PlannedRun] = ()
    analysis_digest: str | None = None
    accounting: Accounting | None = None  # what every run is charged; None: nothing froze it
    not_known: str = ""  # why nobody here can tell whether it keeps the rules that it claims, if so


def check_plan(results: Path) -> PlanFindings:
    """Read the plan of a results folder and recompute its ids and digests.

    Raises:
        ResultsError: the folder has no plan: it is not a results folder.
    """
    findings = PlanFindings()
    try:
        content = read_regular(results / PLAN)
    except OSError as error:
        problem = f"{results} is not a results folder: {PLAN} cannot be read ({error.strerror})"
        raise ResultsError(f"{problem}; give a results folder, e.g. one under results/") from error
    data = read_object(content, FORMAT_VERSION, findings, readers=LAST_READERS)
    if data is None:
        return findings
    try:
        _check(data, findings)
    except Exception as error:  # an altered plan may break any rule of reading it: that is a finding, not a fault
        findings.add(
            "schema", "", str(error) if isinstance(error, TuneoffError) else f"is not a plan: {type(error).__name__}: {error}"
        )
    return findings


def _check(data: Mapping[str, Any], findings: PlanFindings) -> None:
    """Read the plan with the ids that its specifications have, write it anew, and compare."""
    data = {**data, "runs": [{key: run[key] for key in run if key not in OBSOLETE} for run in data["runs"]]}
    runs = []
    for number, entry in enumerate(data["runs"], start=1):
        try:
            runs.append({**entry, "run_id": run_spec_from_json(entry["spec"]).run_id})
        except ExperimentError as error:
            raise ResultsError(f"runs[#{number}]: {error}") from error
    plan = Plan.from_json({**data, "runs": runs})
    anew = own_copy(plan.to_json())
    findings.is_read, findings.runs = True, plan.runs
    findings.analysis_digest = anew["analysis_digest"]
    findings.accounting = plan.accounting if {"carbon", "prices"} <= plan.analysis.keys() else None

    # The meter, the intensity and the prices of the plan are what its analysis froze of them.
    for name, value in {"power": plan.power.to_json(), **frozen(plan.accounting)}.items():
        if name in plan.analysis:
            path = name if name == "power" else f"accounting: {name}"
            findings.compare("plan", own_copy(value), plan.analysis[name], path, text="is {1}, but its analysis froze {2}")

    # The block of each run is that of its seed, and the run that stands for it is run.
    seeds = plan.analysis.get("seeds")
    by_id = {run.run_id: run for run in plan.runs}
    for number, run in enumerate(plan.runs, start=1):
        if isinstance(seeds, list) and (run.spec.warm_up or run.spec.seed in seeds):
            block = WARM_UP_BLOCK if run.spec.warm_up else seeds.index(run.spec.seed)
            if block != run.block:
                findings.add("plan", f"runs[#{number}].block", f"stored {run.block}, its seed has {block}", run.block, block)
        if run.same_as is not None:
            other = by_id.get(run.same_as)
            if run.skip_reason is None or other is None or other.skip_reason is not None:
                text = f"{run.same_as} stands for it, but {'it is not skipped' if run.skip_reason is None else 'is not run'}"
                findings.add("plan", f"runs[#{number}].same_as", text)

    if RULES in plan.analysis:
        from tuneoff.experiment.rules import broken_rules  # which reads a file

        broken, findings.not_known = broken_rules(plan)
        if broken:
            findings.add("plan", f"analysis.{RULES}", broken)
    findings.compare("plan", dict(data), anew)


def check_runs(plan: PlanFindings, outcomes: Sequence[VerifiedExecution], has_ended: bool | None = None) -> list[PlannedRun]:
    """Note planned runs that must be there and are not, and executions of others; return the runs that were not begun.

    Runs are executed in the plan's order, so a run without an execution was removed where a later one has one. It also was
    where the last command came to its end (`has_ended`); where nothing tells that, if no execution was interrupted. An
    execution without events and record was cut while it was made, or its files were removed: it counts for nothing.
    """
    present = {outcome.run_id for outcome in outcomes if not outcome.is_empty}
    due = [run for run in plan.runs if run.skip_reason is None]
    last = max((index for index, run in enumerate(due) if run.run_id in present), default=-1)
    if has_ended is None:
        ended = {outcome.run_id for outcome in outcomes if outcome.status not in ("interrupted", None)}
        has_ended = bool(outcomes) and all(outcome.run_id in ended for outcome in outcomes)
    not_begun = []
    for index, run in enumerate(due):
        if run.run_id in present:
            continue
        if (index > last or run.spec.shared_key == due[last].spec.shared_key) and not has_ended:
            not_begun.append(run)
            continue
        why = "later runs of the plan have one" if index < last else "nothing was interrupted"
        text = f"planned ({run.name}), but it has no execution, and {why}: it was removed"
        plan.add("plan", "", text, where=f"{RUNS}/{run.run_id}")
    run_ids = {run.run_id for run in plan.runs}
    for outcome in outcomes:
        if outcome.run_id not in run_ids:
            plan.add("plan", "", "its run is not in the plan", where=outcome.where)
    return not_begun


def check_planned(derived: Derived, end: ExecutionEnd, task: VerificationTask, outcome: VerifiedExecution) -> None:
    """Hold a run to what it was to be charged, and to the analysis that was frozen before it.

    One that was killed at its begin may have no file of what it was charged.
    """
    is_charged = derived.record.status == "done" or any(file.name == ACCOUNTING for file in end.sealed)
    for name in ("intensity", "prices") if task.accounting is not None and is_charged else ():
        charged, planned = (plain(getattr(accounting, name)) for accounting in (derived.evidence.accounting, task.accounting))
        outcome.compare("plan", charged, planned, name, what=ACCOUNTING, text="{0} is {1}, the plan has {2}")
    stored = end.environment.get("analysis_digest")
    if task.analysis_digest is not None and stored is None:
        outcome.notes.append("its end has no analysis_digest: a later command stated it, as its own had ended")
    elif task.analysis_digest not in (None, stored):
        text = f"stored {str(stored)[:12]}, the plan has {str(task.analysis_digest)[:12]}"
        outcome.add("plan", "environment.analysis_digest", text, stored, task.analysis_digest)
