"""Verify `matrix.json`, its ids and digests; that what it planned is there; that runs are as it says."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tuneoff.base.files import read_regular
from tuneoff.base.identity import own_copy
from tuneoff.base.json_values import plain
from tuneoff.base.layout import ACCOUNTING, PLAN, RUNS
from tuneoff.errors import ExperimentError, ResultsError, TuneoffError
from tuneoff.experiment.accounting.declared import Accounting, frozen
from tuneoff.experiment.names import run_name
from tuneoff.experiment.plan import FORMAT_VERSION, LAST_READERS, WARM_UP_BLOCK, Plan
from tuneoff.experiment.spec import run_spec_from_json
from tuneoff.measure.derived import Derived
from tuneoff.record.end import ExecutionEnd
from tuneoff.trust.verify.findings import Findings, Problem, VerifiedExecution, differences, read_object, show

STATED = ("name", "path", "content", "labels")  # of the plan: nothing else says them


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """A run of the plan."""

    run_id: str
    name: str
    skip_reason: str | None = None
    emulated: bool = False


@dataclass(slots=True, kw_only=True)
class PlanFindings(Findings):
    """The plan of a results folder and what is wrong with it; `is_read` is False where it cannot be read."""

    where: str = PLAN
    is_read: bool = False
    runs: list[Planned] = field(default_factory=list)
    analysis_digest: str | None = None
    accounting: Accounting | None = None  # what every run is charged; None: nothing froze it


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
    runs = []
    for number, entry in enumerate(data["runs"], start=1):
        try:
            runs.append({**entry, "run_id": run_spec_from_json(entry["spec"]).run_id})
        except ExperimentError as error:
            raise ResultsError(f"runs[#{number}]: {error}") from error
    plan = Plan.from_json({**data, "runs": runs})
    anew = own_copy(plan.to_json())
    findings.is_read = True
    findings.runs = [
        Planned(run_id=run.run_id, name=run_name(run.label, run.spec), skip_reason=run.skip_reason, emulated=run.emulated)
        for run in plan.runs
    ]
    findings.analysis_digest = anew["analysis_digest"]
    findings.accounting = plan.accounting if {"carbon", "prices"} <= plan.analysis.keys() else None

    # The meter, the intensity and the prices of the plan are what its analysis froze of them.
    for name, value in {"power": plan.power.to_json(), **frozen(plan.accounting)}.items():
        if name in plan.analysis:
            for difference in differences(own_copy(value), plan.analysis[name], name):
                text = f"is {show(difference.stored)}, but its analysis froze {show(difference.recomputed)}"
                what = f"accounting: {difference.path}" if name != "power" else difference.path
                findings.add("plan", what, text, difference.stored, difference.recomputed)

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

    for difference in differences(dict(data), anew):
        findings.add("plan", difference.path, difference.text, difference.stored, difference.recomputed)


def check_runs(
    planned: Sequence[Planned], outcomes: Sequence[VerifiedExecution], has_ended: bool | None = None
) -> tuple[list[Problem], list[Planned]]:
    """Return problems for planned runs that must be there and are not, and for executions of others; and runs not begun.

    Runs are executed in the plan's order, so a run without an execution was removed where a later one has one. It also was
    where the last command came to its end (`has_ended`); where nothing tells that, if no execution was interrupted. An
    execution without events and record was cut while it was made, or its files were removed: it counts for nothing.
    """
    present = {outcome.run_id for outcome in outcomes if not outcome.is_empty}
    due = [run for run in planned if run.skip_reason is None]
    last = max((index for index, run in enumerate(due) if run.run_id in present), default=-1)
    problems, not_begun = [], []
    if has_ended is None:
        executed = {outcome.run_id for outcome in outcomes}
        has_ended = bool(executed) and not any(_is_cut(run_id, outcomes) for run_id in executed)
    for index, run in enumerate(due):
        if run.run_id in present:
            continue
        if index < last:
            problems.append(_missing(run, "later runs of the plan have one: it was removed"))
        elif has_ended:
            problems.append(_missing(run, "nothing was interrupted: it was removed"))
        else:
            not_begun.append(run)
    run_ids = {run.run_id for run in planned}
    for outcome in outcomes:
        if outcome.run_id not in run_ids:
            problems.append(Problem(check="plan", where=outcome.where, what="", text="its run is not in the plan"))
    return problems, not_begun


def removed_executions(
    listed: Sequence[tuple[str, str]], outcomes: Sequence[VerifiedExecution], named: Collection[str]
) -> Iterator[Problem]:
    """Yield a problem for each execution that was begun and is not there; `known`: what is named already.

    `listed`: (run id, execution id) of those that were begun. A folder that was made before there was such a list has none.
    """
    present = {(outcome.run_id, outcome.execution_id) for outcome in outcomes}
    for run_id, execution_id in dict.fromkeys(listed):
        if (run_id, execution_id) not in present and f"{RUNS}/{run_id}" not in named:
            text = "was begun in this folder, but is not there: it was removed"
            yield Problem(check="file", where=f"{RUNS}/{run_id}/{execution_id}", what="", text=text)


def _missing(run: Planned, why: str) -> Problem:
    text = f"planned ({run.name}), but it has no execution, and {why}"
    return Problem(check="plan", where=f"runs/{run.run_id}", what="", text=text)


def _is_cut(run_id: str, outcomes: Sequence[VerifiedExecution]) -> bool:
    """Tell whether no execution of a run came to an end of its own."""
    return all(outcome.status in ("interrupted", None) for outcome in outcomes if outcome.run_id == run_id)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanExpectation:
    """What the plan says of a run; None: there is no such plan, or it froze nothing."""

    emulated: bool | None = None
    analysis_digest: str | None = None
    accounting: Accounting | None = None


def check_charge(derived: Derived, end: ExecutionEnd, expected: PlanExpectation, outcome: VerifiedExecution) -> None:
    """Hold what the run was charged to what its plan says; one that was killed at its begin may have no such file."""
    is_there = derived.record.status == "done" or any(file.name == ACCOUNTING for file in end.sealed)
    if expected.accounting is None or not is_there:
        return
    for name in ("intensity", "prices"):
        charged, planned = (plain(getattr(accounting, name)) for accounting in (derived.evidence.accounting, expected.accounting))
        for difference in differences(charged, planned, name):
            text = f"{difference.path} is {show(difference.stored)}, the plan has {show(difference.recomputed)}"
            outcome.add("plan", ACCOUNTING, text, difference.stored, difference.recomputed)


def check_frozen(environment: Mapping[str, Any], expected: PlanExpectation, outcome: VerifiedExecution) -> None:
    """Hold the run to the analysis that was frozen before it."""
    stored = environment.get("analysis_digest")
    if expected.analysis_digest is None:
        return
    if stored is None:
        outcome.notes.append("its end has no analysis_digest: a later command stated it, as its own had ended")
    elif stored != expected.analysis_digest:
        text = f"stored {str(stored)[:12]}, the plan has {expected.analysis_digest[:12]}"
        outcome.add("plan", "environment.analysis_digest", text, stored, expected.analysis_digest)
