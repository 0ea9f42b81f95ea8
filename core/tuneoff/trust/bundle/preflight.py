"""Before anything is run: what is in the bundle, and what is here."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import tuneoff
from tuneoff import registry
from tuneoff.base.code_digest import code_digest
from tuneoff.base.commands import DISTRIBUTIONS
from tuneoff.base.identity import canonical_json, configuration_digest, derive_seed
from tuneoff.base.packages import installed_version
from tuneoff.errors import TuneoffError
from tuneoff.experiment.plan import PlannedRun
from tuneoff.experiment.spec import WorkloadSpec
from tuneoff.judge.comparison.environments import (
    UNKNOWN,
    EnvironmentRow,
    Level,
    compare_environments,
    environment_row,
    is_same_machine,
)
from tuneoff.record.environment import capture
from tuneoff.record.run_record import RunRecord
from tuneoff.run.provenance import prepare
from tuneoff.trust.bundle.foreign import adapter_of, refuse_workload, workload_of
from tuneoff.trust.bundle.opened import Bundle

OWN = "tuneoff"
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
    recorded = [
        {
            **environment,
            "versions": {name: version for name, version in (environment.get("versions") or {}).items() if name != OWN},
        }
        for environment in (bundle.records[run.run_id].environment for run in runs)
    ]  # without tuneoff's version, which has a row of its own with the digest of its code
    frameworks: dict[str, str] = {}
    for run in runs:
        with contextlib.suppress(TuneoffError):
            if package := adapter_of(run.spec).capabilities.package:
                frameworks[package] = run.spec.adapter
    here = capture(frameworks)
    packages = dict.fromkeys(name for environment in recorded for name in environment["versions"])
    here["versions"] = {name: here["versions"].get(name) or installed_version(name) for name in packages}
    no_data: dict[str, str] = {}
    rows = [*_verified(bundle), _seeds(bundle, runs, seed)]
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
    return Preflight(
        rows=(*rows, *compare_environments(recorded, [here], levels)),
        no_data=no_data,
        same_machine=is_same_machine(recorded, [here]),
    )


def workload_key(workload: WorkloadSpec) -> str:
    """Return what tells workloads with different data apart."""
    return canonical_json([workload.name, dict(workload.options)])


def _verified(bundle: Bundle) -> Iterator[EnvironmentRow]:
    """Yield which tuneoff made and reads the bundle, and whether its numbers follow from its raw files.

    Another tuneoff may define a metric otherwise, so its recomputation proves nothing; a broken seal does in any case.
    """
    manifest, code = bundle.manifest, code_digest()
    is_own = manifest.tuneoff_code == code
    texts = (f"{manifest.tuneoff} ({manifest.tuneoff_code[:12] or UNKNOWN})", f"{tuneoff.__version__} ({code[:12]})")
    yield environment_row("tuneoff (its code)", "notice", *texts)
    said = "verified" if manifest.verified else f"not verified ({(manifest.problems or ('it says so',))[0]})"
    now = "verified" if not bundle.problems else f"not verified ({bundle.problems[0]})"
    level: Level = "identity" if not manifest.verified or is_own or not bundle.seals_hold else "notice"
    yield environment_row("verification of the bundle", level, said, now, is_wrong=not manifest.verified or bool(bundle.problems))


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
        provenance = prepare(replace(workload, target=registry.installed("workload", workload.name).target))
    except TuneoffError as error:
        no_data[workload_key(workload)] = text = " ".join(str(error).split())
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
