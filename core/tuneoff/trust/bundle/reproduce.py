"""Run a part of a bundle again and compare column by column."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tuneoff.base.json_values import plain
from tuneoff.base.layout import REPRODUCTION
from tuneoff.errors import MissingPackageError, TuneoffError, UnknownNameError
from tuneoff.experiment.names import run_name
from tuneoff.experiment.plan import Plan, PlannedRun
from tuneoff.experiment.skip_check import SkipCheck
from tuneoff.experiment.spec import RunSpec
from tuneoff.measure.stored import read_runs
from tuneoff.record.run_record import RunRecord
from tuneoff.record.selection import selected_executions
from tuneoff.record.store import write_bytes
from tuneoff.trust.bundle.columns import (
    UNEXPLAINED,
    ReproducedColumn,
    ReproductionAnswer,
    RunPair,
    exact_columns,
    inconclusive,
    machine_columns,
    of_columns,
    overall,
    quality_columns,
    value_columns,
)
from tuneoff.trust.bundle.foreign import adapter_of
from tuneoff.trust.bundle.opened import Bundle, choose, eligible, group_of, plan_of, served_here, why_not
from tuneoff.trust.bundle.preflight import Preflight, preflight, workload_key

FORMAT_VERSION = 2  # history: 1 = first; 2 = rows of `preflight` have `a` (the bundle) and `b` (here)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReproduceRequest:
    """Which runs are chosen, which of them can be run here, why the others cannot, and what differs before anything runs."""

    bundle: Bundle
    chosen: tuple[PlannedRun, ...]
    preflight: Preflight
    not_here: dict[str, str]
    seed: int | None = None

    @property
    def runnable(self) -> list[PlannedRun]:
        """The runs that are run."""
        return [run for run in self.chosen if run.run_id not in self.not_here]

    @property
    def workloads(self) -> list[tuple[str, dict[str, Any]]]:
        """The name of each workload and what the bundle gives it as options, warm-ups included."""
        warm = [run for run in self.bundle.plan.runs if run.spec.warm_up and run.label in {run.label for run in self.chosen}]
        specs = {workload_key(run.spec.experiment.workload): run.spec.experiment.workload for run in (*self.chosen, *warm)}
        return [(workload.name, dict(workload.options)) for workload in specs.values()]

    @property
    def adapters(self) -> list[tuple[str, dict[str, Any]]]:
        """Of each adapter to which the bundle gives options its name with the platform, and these."""
        specs = {run.label: run.spec for run in self.chosen if run.spec.options}
        return [(f"{spec.adapter}@{spec.platform}", dict(spec.options)) for spec in specs.values()]

    @property
    def names(self) -> dict[str, str]:
        """The name of each run by its id in the bundle: `serial random seed 7 (0 in the bundle)` where another seed runs."""
        labels = self.bundle.plan.label_texts
        return {run.run_id: self._name(labels[run.label], run.spec) for run in self.bundle.plan.runs}

    def _name(self, label: str, spec: RunSpec) -> str:
        if self.seed is None or self.seed == spec.seed:
            return run_name(label, spec)
        return f"{run_name(label, replace(spec, seed=self.seed))} ({spec.seed} in the bundle)"

    def plan(self) -> Plan:
        """Return the plan that runs them."""
        return plan_of(self.bundle, self.runnable, self.seed)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reproduction:
    """What a reproduction came to; `machine` is the answer of the columns bound to the machine alone."""

    request: ReproduceRequest
    answer: ReproductionAnswer
    why: str
    machine: ReproductionAnswer | None
    columns: tuple[ReproducedColumn, ...]
    results: Path | None

    @property
    def eligible_runs(self) -> int:
        """How many runs of the bundle can be asked for."""
        return len(eligible(self.request.bundle))

    def to_json(self) -> dict[str, Any]:
        """Return all of it as JSON values."""
        request = self.request
        return {
            "format_version": FORMAT_VERSION,
            "answer": self.answer,
            "why": self.why,
            "machine_bound_answer": self.machine,
            "bundle": str(request.bundle.path),
            "bundle_sha256": request.bundle.sha256,
            "plan_id": request.bundle.manifest.plan_id,
            "results": None if self.results is None else str(self.results.resolve()),
            "runs": [run.run_id for run in request.chosen],
            "eligible_runs": self.eligible_runs,
            "not_run": request.not_here,
            "adapters": [{"name": name, "options": options} for name, options in request.adapters],
            "workloads": [{"name": name, "options": options} for name, options in request.workloads],
            "preflight": plain(request.preflight.rows),
            "columns": plain(self.columns),
        }


def prepare(
    bundle: Bundle,
    *,
    adapters: Sequence[str] | None = None,
    runs: int = 1,
    everything: bool = False,
    seed: int | None = None,
) -> ReproduceRequest:
    """Choose runs and compare the bundle with this machine; runs nothing.

    Raises:
        ExperimentError: there is no such run.
        MissingPackageError, UnknownNameError: none of the chosen runs can be run, as something is not installed at all.
    """
    chosen = choose(bundle, adapters=adapters, runs=runs, everything=everything)
    check = SkipCheck()
    reasons = {run.run_id: error for run in chosen if (error := why_not(run, check)) is not None}
    absent = [  # not installed at all, as opposed to of another version or unfit
        error
        for error in reasons.values()
        if isinstance(error, UnknownNameError) or (isinstance(error, MissingPackageError) and " is installed" not in str(error))
    ]
    if len(absent) == len(chosen):
        raise absent[0]
    comparison = preflight(bundle, chosen, seed)
    not_here = {run_id: " ".join(str(error).split()) for run_id, error in reasons.items()}
    for run in chosen:
        problem = comparison.no_data.get(workload_key(run.spec.experiment.workload))
        if problem is not None:
            not_here.setdefault(run.run_id, problem)
    return ReproduceRequest(bundle=bundle, chosen=tuple(chosen), preflight=comparison, not_here=not_here, seed=seed)


def compare(request: ReproduceRequest, results: Path | None) -> Reproduction:
    """Compare what was run with the bundle, and write the answer into the results folder; None: nothing was to be run.

    Raises:
        ResultsError: a record cannot be read, or the folder cannot be written.
    """
    here = selected_executions(read_runs(results)) if results is not None else {}
    columns: list[ReproducedColumn] = []
    groups: dict[tuple[str, str], list[tuple[PlannedRun, RunRecord]]] = {}
    for run in request.chosen:
        where = request.names[run.run_id]
        seed = None if run.run_id in request.not_here else request.seed
        record = here.get(run.run_id if seed is None else replace(served_here(run.spec), seed=seed).run_id)
        if record is None:
            why = request.not_here.get(run.run_id, "--plan was given" if results is None else "the command was interrupted")
            columns.append(inconclusive("status", where, f"not run: {why}"))
            continue
        pair = RunPair(
            where=where,
            spec=run.spec,
            sampler=_sampler(run),
            bundle=request.bundle.records[run.run_id],
            here=record,
            numerics=tuple(request.preflight.changed("numerics")),
            same_machine=request.preflight.same_machine,
        )
        columns += [*exact_columns(pair), *(value_columns(pair) if record.status == "done" else ())]
        columns += machine_columns(pair) if record.status == "done" else ()
        if record.status == "done":
            groups.setdefault(group_of(run), []).append((run, record))
    for group, members in groups.items():
        theirs = [request.bundle.records[run.run_id] for run in eligible(request.bundle) if group_of(run) == group]
        ours = [replace(record, run_id=run.run_id) for run, record in members]  # their ids, which another seed changes
        where = request.names[members[0][0].run_id]
        columns += quality_columns(where.rpartition(" seed ")[0], theirs, ours)
    answer, why = overall(columns, request.preflight.changed("identity"))
    # What else differs may explain a difference, and a reader must know it anyway.
    others = request.preflight.changed("numerics", "notice")
    if answer is ReproductionAnswer.DIFFERENT and others:
        text = f"what else differs: {'; '.join(others)}"
        why = why.replace(UNEXPLAINED, text) if UNEXPLAINED in why else f"{why}; {text}"
    elif answer is ReproductionAnswer.REPRODUCED and others:
        names = [row.name for row in request.preflight.rows if row.level in ("numerics", "notice") and row.is_same is False]
        why = f"{why}, though these are others here: {', '.join(names)}"
    bound = [column for column in columns if column.tolerance == "machine"]
    reproduction = Reproduction(
        request=request,
        answer=answer,
        why=why,
        machine=of_columns(bound) if bound else None,
        columns=tuple(columns),
        results=results,
    )
    if results is not None:
        write_bytes(results / REPRODUCTION, (json.dumps(reproduction.to_json(), indent=1, ensure_ascii=False) + "\n").encode())
    return reproduction


def _sampler(run: PlannedRun) -> str:
    """Return the sampler's name; of a `default` that is another one, that one's."""
    name = run.spec.experiment.sampler.name
    try:
        offer = adapter_of(run.spec).capabilities.samplers.get(name)
    except TuneoffError:
        return name
    return (offer.same_as if offer is not None else None) or name
