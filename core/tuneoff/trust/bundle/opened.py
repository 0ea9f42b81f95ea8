"""Open a bundle: unpack it to a temporary folder, check it, read what it holds, and remove the folder again.

Chosen to be run again are by default the cheapest runs of each adapter.
"""

from __future__ import annotations

import contextlib
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import msgspec

from tuneoff import registry
from tuneoff.base.capabilities import LOCAL
from tuneoff.base.commands import OWN
from tuneoff.base.files import sha256_of, without_links
from tuneoff.base.interrupting import interrupting
from tuneoff.errors import ExperimentError, ResultsError, UnknownNameError
from tuneoff.experiment.names import entry_label
from tuneoff.experiment.plan import REPRODUCES, RULES, Plan, PlannedRun
from tuneoff.experiment.spec import RunSpec, run_spec_from_json
from tuneoff.measure.stored import read_runs
from tuneoff.record.results_folder import read_plan
from tuneoff.record.run_record import RunRecord
from tuneoff.record.store import selected_executions
from tuneoff.trust.bundle.archive import unpack
from tuneoff.trust.bundle.foreign import TRUSTED, obeyed_power, refuse
from tuneoff.trust.bundle.manifest import MANIFEST, RESULTS, BundleManifest
from tuneoff.trust.verify.results import verify

GREATEST = 10**18  # of a number of bytes or ns: more is none, and a larger integer breaks arithmetic with decimal ones


@dataclass(frozen=True, slots=True, kw_only=True)
class Bundle:
    """What a bundle holds: its manifest, the plan, and by run id the execution that stands for each run.

    The plan's labels follow from its specifications, not the bundle's own words.
    `problems`: what does not follow from the raw files in it, recomputed now.
    """

    path: Path
    sha256: str
    manifest: BundleManifest
    plan: Plan
    records: dict[str, RunRecord]
    problems: tuple[str, ...]
    not_known: str = ""  # why nobody here can tell whether its answer follows from its records, if so


@contextlib.contextmanager
def unpacked(path: Path, limit_bytes: int) -> Iterator[tuple[BundleManifest, Path]]:
    """Unpack and check a bundle; nothing of it stays on the disk, also where a signal ends the command.

    Raises:
        KeyboardInterrupt: SIGINT, SIGTERM or SIGHUP.
        ResultsError: it is not a bundle, truncated, changed, of another version, above the limit, or there is no space; or the
            block raised it.
    """
    try:
        with interrupting(), tempfile.TemporaryDirectory(prefix="tuneoff-bundle-") as temporary:
            folder = without_links(Path(temporary))
            manifest = unpack(path, folder, limit_bytes)
            (folder / MANIFEST).write_bytes(manifest.encode())
            yield manifest, folder
    except ResultsError as error:
        text = str(error).replace(str(folder / RESULTS), RESULTS)
        raise type(error)(text if str(path) in text else f"{path}: {text}") from error
    except OSError as error:
        raise ResultsError(f"{path} cannot be unpacked: {error.strerror}; set TMPDIR to a folder with space") from error


def open_bundle(path: Path, limit_bytes: int) -> Bundle:
    """Check and read a bundle. Raises: as `unpacked`."""
    with unpacked(path, limit_bytes) as (manifest, folder):
        digest = sha256_of(path, follow=True)
        results = folder / RESULTS
        stored = read_plan(results)
        runs = []
        for run in stored.runs:
            spec, platform = run.spec, None if run.spec.platform == LOCAL else run.spec.platform
            label = entry_label(spec.adapter, platform, spec.options, spec.replicate, spec.environment)
            runs.append(replace(run, label=label))
        plan = replace(stored, runs=tuple(runs))
        verification = verify(results)
        problems = verification.problems
        stored_runs = list(read_runs(results))
        for record in stored_runs:
            if not is_readable(record):
                text = f"the record of {record.execution_id[:60]!r} is damaged; get the bundle again"
                raise ResultsError(f"{RESULTS}: {text}")
    return Bundle(
        path=path,
        sha256=digest,
        manifest=manifest,
        plan=plan,
        records=selected_executions(stored_runs),
        problems=tuple(problem.line.replace(f"{folder}/", "") for problem in problems),
        not_known=verification.not_known,
    )


def is_readable(record: RunRecord) -> bool:
    """Tell whether its environment has the types that bundles rely on."""
    try:
        msgspec.convert(record.environment, _Environment)
    except msgspec.ValidationError:
        return False
    return True


_Number = (
    Annotated[int, msgspec.Meta(ge=-GREATEST, le=GREATEST)] | Annotated[float, msgspec.Meta(ge=-GREATEST, le=GREATEST)] | None
)


class _Cpu(msgspec.Struct):
    instruction_sets: list[str] | None = None


class _Data(msgspec.Struct):
    sha256: dict[str, str] | None = None


class _Code(msgspec.Struct):
    sha256: str | None = None


class _MachineBefore(msgspec.Struct):
    sentinel_ns: _Number = None


class _Environment(msgspec.Struct):
    versions: dict[Annotated[str, msgspec.Meta(min_length=1)], Any] | None = None
    cpu: _Cpu | None = None
    data: _Data | None = None
    workload: _Code | None = None
    machine_before: _MachineBefore | None = None
    memory_total_bytes: _Number = None
    distributions: dict[str, str] | None = None


def eligible(bundle: Bundle) -> list[PlannedRun]:
    """Return the runs that can be compared: those that are done in the bundle, of jobs at the same time only all together."""
    done = [run for run in bundle.plan.counted if run.run_id in bundle.records and bundle.records[run.run_id].status == "done"]
    together = Counter(run.spec.shared_key for run in done)
    return [run for run in done if together[run.spec.shared_key] == run.spec.experiment.copies]


def choose(bundle: Bundle, *, adapters: Sequence[str] | None = None, runs: int = 1, everything: bool = False) -> list[PlannedRun]:
    """Return the runs to run again, in the plan's order: of each adapter the `runs` cheapest by wall time.

    Every sampler and variant comes once before one comes twice. A run on a platform that is not local is chosen
    only where it is asked for by name, to say that it is not run.

    Raises:
        ExperimentError: the bundle has no run that is done, or none of such an adapter.
    """
    done = eligible(bundle)
    if not done:
        raise ExperimentError(f"{bundle.path} has no run that is done, so there is nothing to reproduce")
    if adapters is not None:
        candidates = [
            run for run in done if {run.label, run.spec.adapter, f"{run.spec.adapter}@{run.spec.platform}"} & {*adapters}
        ]
        names = {name for run in done for name in (run.label, run.spec.adapter)}
        unknown = [name for name in adapters if name.partition("@")[0] not in {label.partition("@")[0] for label in names}]
        if unknown or not candidates:
            wrong = (unknown or list(adapters))[0]
            raise UnknownNameError(
                f"{bundle.path} has no run of adapter {wrong!r} that is done; it has: {', '.join(sorted(names))}"
            )
    else:
        candidates = [run for run in done if run.spec.platform == LOCAL]
        if not candidates:
            where = f"{done[0].spec.adapter}@{done[0].spec.platform}"
            raise ExperimentError(f"{bundle.path} has only runs outside this machine ({where}), and none is run there; {TRUSTED}")
    if everything:
        return candidates
    # The runs of each adapter, cheapest first, each group once before one comes twice.
    costs = []
    for run in (run for run in candidates if not run.spec.copy):
        jct = bundle.records[run.run_id].metrics.get("time.jct")
        cost = float(jct.value) if jct is not None and jct.value is not None else float("inf")
        costs.append((cost, run.run_id, group_of(run)))
    earlier: Counter[tuple[str, str]] = Counter()
    ranked: dict[str, list[tuple[int, float, str]]] = {}
    for cost, run_id, group in sorted(costs):
        ranked.setdefault(group[0], []).append((earlier[group], cost, run_id))
        earlier[group] += 1
    chosen = {run_id for runs_of_adapter in ranked.values() for _, _, run_id in sorted(runs_of_adapter)[:runs]}
    together = {run.spec.shared_key for run in candidates if run.run_id in chosen}
    return [run for run in candidates if run.spec.shared_key in together]


def group_of(run: PlannedRun) -> tuple[str, str]:
    """Return what all seeds of a run share: adapter entry and scope."""
    return run.label, run.spec.scope_key()


def served_here(spec: RunSpec) -> RunSpec:
    """Return a bundle's specification with the classes that are installed here: a bundle names code, it does not bring it.

    Raises:
        TuneoffError: the adapter or workload is not there or broken, or does not obey the bundle's options.
    """
    refuse(spec)
    workload = replace(spec.experiment.workload, target=registry.installed("workload", spec.experiment.workload.name).target)
    return replace(
        spec,
        adapter_target=registry.installed("adapter", spec.adapter).target,
        experiment=replace(spec.experiment, workload=workload),
    )


def plan_of(bundle: Bundle, runs: Sequence[PlannedRun], seed: int | None = None) -> Plan:
    """Return the plan that runs `runs` again, each adapter's warm-up first where the bundle had one.

    `seed`: another seed for all of them, so that it is another run and no repetition.
    """
    entries = {run.label for run in runs}
    warm = [run for run in bundle.plan.runs if run.spec.warm_up and run.skip_reason is None and run.label in entries]
    served = [replace(run, spec=_locked(served_here(run.spec), bundle)) for run in (*warm, *runs)]
    if seed is not None:
        other = ((run, replace(run.spec, seed=seed)) for run in served)
        served = list({spec.run_id: replace(run, spec=spec, run_id=spec.run_id) for run, spec in other}.values())
    content: Mapping[str, Any] = {REPRODUCES: bundle.manifest.plan_id, "bundle_sha256": bundle.sha256}
    return Plan(
        name=f"{bundle.manifest.name}-reproduced",
        path=str(bundle.path),
        runs=tuple(served),
        analysis={key: value for key, value in bundle.plan.analysis.items() if key != RULES},  # of all runs
        content=content,
        power=obeyed_power(bundle.plan.power)[0],
        accounting=bundle.plan.accounting,
    )


def _locked(spec: RunSpec, bundle: Bundle) -> RunSpec:
    """Return a specification of which an environment of its own, if any, is made with the versions that the bundle's runs had."""
    if spec.environment is None:
        return spec
    entry = spec.adapter, spec.environment
    alike = [record for record in bundle.records.values() if (of := record.run_spec()) and (of.adapter, of.environment) == entry]
    versions = next((record.environment.get("distributions") or {} for record in alike), {})
    locked = [f"{name}=={version}" for name, version in sorted(versions.items()) if name != OWN]
    return run_spec_from_json({**spec.to_json(), "locked": locked})
