"""Before anything is run: what is in the bundle, and what is here."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import tuneoff
from tuneoff import registry
from tuneoff.base.code_digest import code_digest
from tuneoff.base.commands import DISTRIBUTIONS
from tuneoff.base.identity import canonical_json, configuration_digest, derive_seed
from tuneoff.base.packages import installed_version
from tuneoff.errors import TuneoffError
from tuneoff.experiment.plan import PlannedRun
from tuneoff.experiment.spec import WorkloadSpec
from tuneoff.record.environment import capture
from tuneoff.record.run_record import RunRecord
from tuneoff.run.provenance import Provenance, prepare
from tuneoff.trust.bundle.foreign import adapter_of, refuse_workload, workload_of
from tuneoff.trust.bundle.opened import Bundle

Level = Literal["identity", "numerics", "machine", "notice"]
UNKNOWN = "not recorded"
ABSENT = "not installed"
OWN = "tuneoff"  # has a row of its own, with the digest of its code
OWN_RESULT = frozenset({"torch", "numpy", "scipy", "scikit-learn"})  # may change a workload's numbers, if it uses them


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvironmentRow:
    """One thing, as it is in the bundle and here.

    `level`: identity: another value makes it another experiment; numerics: equal bits cannot be expected then; machine: times
    cannot be compared then; notice: named where something differs. `is_same` is None where it is not known.
    """

    name: str
    level: Level
    bundle: str
    here: str
    is_same: bool | None

    @property
    def change(self) -> str:
        """The change in words."""
        return f"{self.name} is {self.here} here, {self.bundle} in the bundle"


@dataclass(frozen=True, slots=True, kw_only=True)
class Preflight:
    """All rows, and by workload why its data cannot be had here."""

    rows: tuple[EnvironmentRow, ...]
    no_data: Mapping[str, str]

    def changed(self, *levels: Level) -> list[str]:
        """Return the changes of these levels, in words."""
        return [row.change for row in self.rows if row.level in levels and row.is_same is False]


def preflight(bundle: Bundle, runs: Sequence[PlannedRun], seed: int | None = None) -> Preflight:
    """Compare the bundle's runs with this machine; prepares the workloads' data, runs nothing."""
    records = [bundle.records[run.run_id] for run in runs]
    frameworks = {name: run.spec.adapter for run in runs if (name := _framework_package(run))}
    here = capture(frameworks)
    no_data: dict[str, str] = {}
    rows = [*_verified(bundle), _seeds(bundle, runs, seed)]
    for key, workload in _distinct_workloads(runs).items():
        own = [bundle.records[run.run_id] for run in runs if workload_key(run.spec.experiment.workload) == key]
        rows += _workload_rows(workload, own, no_data)
    rows += _packages(records, here, set(frameworks), _preloaded(runs))
    rows += _machine(records, here)
    return Preflight(rows=tuple(rows), no_data=no_data)


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
    yield _row("tuneoff (its code)", "notice", *texts)
    said = "verified" if manifest.verified else f"not verified ({(manifest.problems or ('it says so',))[0]})"
    now = "verified" if not bundle.problems else f"not verified ({bundle.problems[0]})"
    level: Level = "identity" if not manifest.verified or is_own or not bundle.seals_hold else "notice"
    yield _row("verification of the bundle", level, said, now, is_wrong=not manifest.verified or bool(bundle.problems))


def _seeds(bundle: Bundle, runs: Sequence[PlannedRun], seed: int | None) -> EnvironmentRow:
    """Hold the seeds that trials were trained with to those that the run's seed gives; and say where another is asked for."""
    planned = sorted({run.spec.seed for run in runs})
    shown = ", ".join(map(str, planned))
    for run in runs:
        for trial in bundle.records[run.run_id].trials:
            due = derive_seed("trial", run.spec.seed, configuration_digest(trial.configuration))
            other = next((item.seed for item in trial.attempts if item.seed is not None and item.seed != due), None)
            if other is not None:
                text = f"{run.spec.seed}, but {trial.trial} of run {run.run_id} was trained with seed {other}"
                return _row("seed", "identity", text, f"{due} for that trial")
    return _row("seed", "identity", shown, shown if seed is None else str(seed))


def _workload_rows(workload: WorkloadSpec, records: Sequence[RunRecord], no_data: dict[str, str]) -> list[EnvironmentRow]:
    """Return one row per data file that differs, or one for all, and one for the workload's code."""
    try:
        refuse_workload(workload)  # only a workload, and one that obeys them, is called with the options that the bundle gives
        found = prepare(replace(workload, target=registry.installed("workload", workload.name).target))
    except TuneoffError as error:
        no_data[workload_key(workload)] = text = " ".join(str(error).split())
        known = ", ".join(f"{name} {digest[:12]}" for name, digest in sorted(_data(records).items()))
        return [_row(f"data of {workload.name}", "identity", known or "no files", text)]
    return [*_data_rows(workload, records, found), *_code_rows(workload, records, found)]


def _data_rows(workload: WorkloadSpec, records: Sequence[RunRecord], found: Provenance) -> list[EnvironmentRow]:
    known, here = _data(records), dict(found.data.sha256)
    name = f"data of {workload.name}"
    if not known and not here:
        return [_row(name, "identity", "no files", "no files")]
    rows = []
    for file in sorted({*known, *here}):
        if known.get(file) != here.get(file):
            texts = [f"SHA-256 {found[file][:12]}" if file in found else "no such file" for found in (known, here)]
            rows.append(_row(f"data file {file}", "identity", *texts, is_wrong=True))
    same = len({*known, *here}) - len(rows)
    if same:
        text = f"{found.data.name} {found.data.version}, {same} files"
        rows.insert(0, _row(name, "identity", text, text))
    return rows


def _code_rows(workload: WorkloadSpec, records: Sequence[RunRecord], found: Provenance) -> list[EnvironmentRow]:
    codes = {(record.environment.get("workload") or {}).get("sha256") for record in records} - {None}
    here = found.code.get("sha256")
    if not codes or here is None:
        return []
    shown = ", ".join(sorted(str(code)[:12] for code in codes))
    return [_row(f"code of {workload.name}", "notice", shown, str(here)[:12])]


def _packages(
    records: Sequence[RunRecord], here: Mapping[str, Any], frameworks: set[str], preloaded: frozenset[str]
) -> list[EnvironmentRow]:
    rows = [_recorded("python", "notice", (record.environment.get("python") for record in records), here.get("python"))]
    names = dict.fromkeys(name for record in records for name in record.environment.get("versions") or {} if name != OWN)
    for name in names:
        level: Level = "notice"
        if name in frameworks:
            level = "identity"
        elif name in OWN_RESULT and name in {DISTRIBUTIONS.get(module, module) for module in preloaded}:
            level = "numerics"
        recorded = ((record.environment.get("versions") or {}).get(name) for record in records)
        rows.append(
            _recorded(
                name, level, (value for value in recorded if value), here["versions"].get(name, installed_version(name) or ABSENT)
            )
        )
    return rows


def _machine(records: Sequence[RunRecord], here: Mapping[str, Any]) -> list[EnvironmentRow]:
    environments = [record.environment for record in records]
    cpus = [environment.get("cpu") or {} for environment in environments]
    return [
        _recorded("architecture", "numerics", (item.get("machine") for item in environments), here.get("machine")),
        _recorded("CPU", "numerics", map(_cpu_text, cpus), _cpu_text(here["cpu"])),
        _instructions([_sets(cpu) for cpu in cpus], _sets(here["cpu"])),
        _recorded("C library", "numerics", (item.get("libc") for item in environments), here.get("libc")),
        _recorded("logical processors", "machine", (cpu.get("logical_count") for cpu in cpus), here["cpu"].get("logical_count")),
        _recorded("memory", "machine", (_gigabytes(item) for item in environments), _gigabytes(here)),
        _recorded("accelerators", "machine", (_devices(item) for item in environments), _devices(here)),
        _recorded("kernel", "notice", (item.get("kernel") for item in environments), here.get("kernel")),
    ]


def _recorded(name: str, level: Level, recorded: Iterable[Any], here: Any) -> EnvironmentRow:
    values = sorted({str(value) for value in recorded if value is not None})
    return _row(name, level, " / ".join(values) or UNKNOWN, UNKNOWN if here is None else str(here))


def _row(name: str, level: Level, bundle: str, here: str, *, is_wrong: bool = False) -> EnvironmentRow:
    """Return the row of two texts, which are the same where they are equal, and not `is_wrong`."""
    is_same = None if UNKNOWN in (bundle, here) else bundle == here and not is_wrong
    return EnvironmentRow(name=name, level=level, bundle=bundle, here=here, is_same=is_same)


def _data(records: Sequence[RunRecord]) -> dict[str, str]:
    for record in records:
        data = record.environment.get("data")
        if isinstance(data, Mapping):
            return dict(data.get("sha256") or {})
    return {}


def _cpu_text(cpu: Mapping[str, Any]) -> str | None:
    if not cpu.get("name") and cpu.get("family") is None:
        return None
    return f"{cpu.get('name') or cpu.get('vendor')} ({cpu.get('family')}/{cpu.get('model')}/{cpu.get('stepping')})"


def _sets(cpu: Mapping[str, Any]) -> frozenset[str] | None:
    sets = cpu.get("instruction_sets")
    return frozenset(sets) if sets else None


def _instructions(recorded: Sequence[frozenset[str] | None], here: frozenset[str] | None) -> EnvironmentRow:
    """Return the row of the vector instructions; where they differ, those that one of both lacks."""
    name, known = "CPU instruction sets", sorted({sets for sets in recorded if sets is not None}, key=sorted)
    if not known or here is None:
        texts = [UNKNOWN if sets is None else f"{len(sets)} known" for sets in (next(iter(known), None), here)]
        return _row(name, "numerics", *texts)
    if known == [here]:
        return _row(name, "numerics", f"the same {len(here)}", f"the same {len(here)}")
    there = frozenset.union(*known)
    only = [" ".join(sorted(sets)) or "nothing more" for sets in (there - here, here - frozenset.intersection(*known))]
    return _row(name, "numerics", f"also {only[0]}", f"also {only[1]}", is_wrong=True)


def _gigabytes(environment: Mapping[str, Any]) -> str | None:
    total = environment.get("memory_total_bytes")
    return None if total is None else f"{total / 1e9:.0f} GB"


def _devices(environment: Mapping[str, Any]) -> str:
    found = environment.get("accelerators")
    return json.dumps(found, sort_keys=True) if found else "none"


def _framework_package(run: PlannedRun) -> str | None:
    try:
        return adapter_of(run.spec).capabilities.package or None
    except TuneoffError:
        return None


def _preloaded(runs: Sequence[PlannedRun]) -> frozenset[str]:
    found: set[str] = set()
    for workload in _distinct_workloads(runs).values():
        try:
            found |= {name.partition(".")[0] for name in workload_of(workload).preload}
        except TuneoffError:
            return frozenset(OWN_RESULT)  # unknown: any may count
    return frozenset(found)


def _distinct_workloads(runs: Sequence[PlannedRun]) -> dict[str, WorkloadSpec]:
    return {workload_key(run.spec.experiment.workload): run.spec.experiment.workload for run in runs}
