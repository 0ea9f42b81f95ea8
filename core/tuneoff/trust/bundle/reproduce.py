"""Run a part of a bundle again: before that, what is in the bundle and what is here; after it, column by column."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import tuneoff
from tuneoff import registry
from tuneoff.base.code_digest import code_digest
from tuneoff.base.commands import DISTRIBUTIONS
from tuneoff.base.identity import canonical_json, configuration_digest, derive_seed
from tuneoff.base.json_values import plain
from tuneoff.base.layout import REPRODUCTION
from tuneoff.base.output import one_line
from tuneoff.base.packages import installed_version
from tuneoff.errors import ExperimentError, MissingPackageError, TuneoffError, UnknownNameError
from tuneoff.experiment.names import run_name
from tuneoff.experiment.plan import Plan, PlannedRun
from tuneoff.experiment.skip_check import SkipCheck
from tuneoff.experiment.spec import RunSpec, WorkloadSpec
from tuneoff.judge.comparison.environments import (
    UNKNOWN,
    EnvironmentRow,
    Level,
    compare_environments,
    environment_row,
    is_same_machine,
)
from tuneoff.measure.stored import read_runs
from tuneoff.record.environment import capture
from tuneoff.record.run_record import RunRecord
from tuneoff.record.store import selected_executions, write_bytes
from tuneoff.run.provenance import prepare as prepare_data
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
from tuneoff.trust.bundle.foreign import adapter_of, refuse, refuse_workload, workload_of
from tuneoff.trust.bundle.opened import Bundle, choose, eligible, group_of, plan_of, served_here

FORMAT_VERSION = 2  # history: 1 = first; 2 = rows of `preflight` have `a` (the bundle) and `b` (here)
OWN_RESULT = frozenset({"torch", "numpy", "scipy", "scikit-learn"})  # may change a workload's numbers, if it uses them


@dataclass(frozen=True, slots=True, kw_only=True)
class Preflight:
    """All rows, A is the bundle and B here; by workload why its data cannot be had here; and whether times can be compared."""

    rows: tuple[EnvironmentRow, ...]
    no_data: Mapping[str, str]
    same_machine: bool

    def changed(self, *levels: Level) -> list[str]:
        """Return the changes of these levels, in words."""
        return [
            f"{row.name} is {row.b} here, {row.a} in the bundle"
            for row in self.rows
            if row.level in levels and row.is_same is False
        ]


def preflight(bundle: Bundle, runs: Sequence[PlannedRun], seed: int | None = None) -> Preflight:
    """Compare the bundle's runs with this machine; prepares the workloads' data, runs nothing."""
    recorded = [bundle.records[run.run_id].environment for run in runs]
    frameworks: dict[str, str] = {}
    for run in runs:
        with contextlib.suppress(TuneoffError):
            if package := adapter_of(run.spec).capabilities.package:
                frameworks[package] = run.spec.adapter
    here = capture(frameworks)
    packages = dict.fromkeys(name for environment in recorded for name in environment.get("versions") or ())
    here["versions"] = {name: here["versions"].get(name) or installed_version(name) for name in packages}
    anew = {
        "python": here["python"],
        "versions": here["versions"],
    }  # of an environment that is made with the bundle's versions
    recorded = [
        environment if run.spec.environment is None else {**environment, **anew}
        for run, environment in zip(runs, recorded, strict=True)
    ]

    # Which tuneoff made and reads the bundle, and whether its numbers follow from its raw files. Another tuneoff may define a
    # metric otherwise: then nobody here can tell that, and what it says of who made it is its own word.
    manifest = bundle.manifest
    made_by = f"{manifest.tuneoff} ({manifest.tuneoff_code[:12] or UNKNOWN})"
    read_by = f"{tuneoff.__version__} ({code_digest()[:12]})"
    said = "verified" if manifest.verified else f"not verified ({(manifest.problems or ('it says so',))[0]})"
    now = "verified" if not bundle.problems else f"not verified ({bundle.problems[0]})"
    is_wrong = not manifest.verified or bool(bundle.problems)
    rows = [
        environment_row("tuneoff (its code)", "notice", made_by, read_by),
        environment_row("verification of the bundle", "identity", said, now, is_wrong=is_wrong),
        _seeds(bundle, runs, seed),
    ]
    if bundle.not_known:
        rows.insert(2, environment_row("answer of the bundle", "notice", f"made by {made_by}", bundle.not_known, is_wrong=True))

    no_data: dict[str, str] = {}
    preloaded: set[str] = set()
    workloads = {workload_key(run.spec.experiment.workload): run.spec.experiment.workload for run in runs}
    for key, workload in workloads.items():
        records = [bundle.records[run.run_id] for run in runs if workload_key(run.spec.experiment.workload) == key]
        rows += _workload_rows(workload, records, no_data)
        try:
            modules = {name.partition(".")[0] for name in workload_of(workload).preload}
            preloaded |= {DISTRIBUTIONS.get(module, module) for module in modules}
        except TuneoffError:
            preloaded |= OWN_RESULT  # unknown: any may count
    levels: dict[str, Level] = {**dict.fromkeys(OWN_RESULT & preloaded, "numerics"), **dict.fromkeys(frameworks, "identity")}
    rows += compare_environments(recorded, [here], levels)
    return Preflight(
        rows=tuple(row for row in rows if row.name != "tuneoff"),  # which has a row with the digest of its code
        no_data=no_data,
        same_machine=is_same_machine(recorded, [here]),
    )


def workload_key(workload: WorkloadSpec) -> str:
    """Return what tells workloads with different data apart."""
    return canonical_json([workload.name, dict(workload.options)])


def _seeds(bundle: Bundle, runs: Sequence[PlannedRun], seed: int | None) -> EnvironmentRow:
    """Hold the seeds that trials were trained with to those that the run's seed gives; and say where another is asked for."""
    planned = ", ".join(map(str, sorted({run.spec.seed for run in runs})))
    for run in runs:
        for trial in bundle.records[run.run_id].trials:
            due = derive_seed("trial", run.spec.seed, configuration_digest(trial.configuration))
            other = next((item.seed for item in trial.attempts if item.seed is not None and item.seed != due), None)
            if other is not None:
                text = f"{run.spec.seed}, but {trial.trial} of run {run.run_id} was trained with seed {other}"
                return environment_row("seed", "identity", text, f"{due} for that trial")
    return environment_row("seed", "identity", planned, planned if seed is None else str(seed))


def _workload_rows(workload: WorkloadSpec, records: Sequence[RunRecord], no_data: dict[str, str]) -> list[EnvironmentRow]:
    """Return one row per data file that differs, or one for all, and one for the workload's code."""
    try:
        refuse_workload(workload)  # only a workload, and one that obeys them, is called with the options that the bundle gives
        provenance = prepare_data(replace(workload, target=registry.installed("workload", workload.name).target))
    except TuneoffError as error:
        no_data[workload_key(workload)] = text = one_line(str(error))
        digests = ", ".join(f"{name} {digest[:12]}" for name, digest in sorted(_data(records).items()))
        return [environment_row(f"data of {workload.name}", "identity", digests or "no files", text)]
    recorded, here = _data(records), dict(provenance.data.sha256)
    files = sorted({*recorded, *here})
    rows = []
    for file in files:
        if recorded.get(file) != here.get(file):
            texts = [f"SHA-256 {digests[file][:12]}" if file in digests else "no such file" for digests in (recorded, here)]
            rows.append(environment_row(f"data file {file}", "identity", *texts, is_wrong=True))
    same = len(files) - len(rows)
    if same or not files:
        text = f"{provenance.data.name} {provenance.data.version}, {same} files" if files else "no files"
        rows.insert(0, environment_row(f"data of {workload.name}", "identity", text, text))
    codes = {(record.environment.get("workload") or {}).get("sha256") for record in records} - {None}
    code = provenance.code.get("sha256")
    if codes and code is not None:
        texts = [", ".join(sorted(str(each)[:12] for each in codes)), str(code)[:12]]
        rows.append(environment_row(f"code of {workload.name}", "notice", *texts))
    return rows


def _data(records: Sequence[RunRecord]) -> dict[str, str]:
    for record in records:
        data = record.environment.get("data")
        if isinstance(data, Mapping):
            return dict(data.get("sha256") or {})
    return {}


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
    reasons: dict[str, TuneoffError] = {}
    for run in chosen:
        try:
            refuse(run.spec)  # first: another's check of a run must not see what a stranger gives
            if (reason := check.reason(run.spec, adapter_of(run.spec))) is not None:
                reasons[run.run_id] = (MissingPackageError if "pip install" in reason else ExperimentError)(reason)
        except TuneoffError as error:
            reasons[run.run_id] = error
    absent = [  # not installed at all, as opposed to of another version or unfit
        error
        for error in reasons.values()
        if isinstance(error, UnknownNameError) or (isinstance(error, MissingPackageError) and " is installed" not in str(error))
    ]
    if len(absent) == len(chosen):
        raise absent[0]
    comparison = preflight(bundle, chosen, seed)
    not_here = {run_id: one_line(str(error)) for run_id, error in reasons.items()}
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
        columns += exact_columns(pair)
        if record.status == "done":
            columns += [*value_columns(pair), *machine_columns(pair)]
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
    made = [environment for record in here.values() if isinstance(environment := record.environment.get("made"), Mapping)]
    if dropped := dict.fromkeys(text for environment in made for text in environment.get("dropped") or ()):
        why = f"{why}; versions of the bundle that could not be kept in an environment here: {', '.join(dropped)}"
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
