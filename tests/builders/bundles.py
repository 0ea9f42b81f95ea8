"""Bundles for tests: small archives made by hand, packed results folders, and records with one thing planted in them."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import tarfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec

from builders.specs import make_spec
from tuneoff.base.identity import configuration_digest, derive_seed
from tuneoff.experiment.spec import (
    RunSpec,
    Workers,
    run_spec_to_json,
)
from tuneoff.record.end import key_of
from tuneoff.record.metric_value import MetricValue
from tuneoff.record.run_record import AttemptRecord, BestRecord, EpochRecord, RunRecord, TestRecord, TrialRecord
from tuneoff.trust.bundle.archive import describe, unpack, write_archive
from tuneoff.trust.bundle.columns import ReproducedColumn, RunPair
from tuneoff.trust.bundle.manifest import MANIFEST, BundleManifest
from tuneoff.trust.bundle.pack import Packed, pack

LIMIT = 10_000_000
FILES: Mapping[str, bytes] = {"README.txt": b"read me\n", "results/a.txt": b"a" * 3000, "results/deep/b.bin": bytes(range(256))}


def manifest_of(files: Mapping[str, bytes], **more: Any) -> BundleManifest:
    listed = tuple(describe(path, content) for path, content in sorted(files.items()))
    return BundleManifest(**{"name": "small", "plan_id": "p", "tuneoff": "0", "verified": True, "files": listed, **more})


def small(path: Path, files: Mapping[str, bytes] = FILES) -> Path:
    """Write a bundle of these files; they are no results."""
    write_archive(path, manifest_of(files), files)
    return path


def member(name: str, content: bytes = b"", **fields: Any) -> tuple[tarfile.TarInfo, bytes]:
    entry = tarfile.TarInfo(name)
    entry.size = len(content)
    for field, value in fields.items():
        setattr(entry, field, value)
    return entry, content


def by_hand(path: Path, members: Sequence[tuple[tarfile.TarInfo, bytes]]) -> Path:
    """Write an archive of any members, as no honest program would."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        for entry, content in members:
            tar.addfile(entry, io.BytesIO(content))
    path.write_bytes(gzip.compress(packed.getvalue(), mtime=0))
    return path


def members_of(manifest: BundleManifest, files: Mapping[str, bytes]) -> list[tuple[tarfile.TarInfo, bytes]]:
    """Return the members of an honest archive."""
    listed = {MANIFEST: manifest.encode(), **files}
    return [member(f"{manifest.name}/{path}", content) for path, content in listed.items()]


def packed(results: Path, target: Path, **more: Any) -> Packed:
    """Pack a results folder."""
    arguments = {"checkpoints": False, "allow_unverified": False, "limit_bytes": LIMIT, **more}
    return pack(results, target, **arguments)


def repacked(bundle: Path, target: Path, change: Callable[[Path], None], **manifest: Any) -> Path:
    """Return a bundle whose content was changed by somebody who then wrote a manifest that fits."""
    folder = target.parent / f"{target.name}.d"
    folder.mkdir()
    old = unpack(bundle, folder, LIMIT)
    change(folder)
    contents = {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    files = tuple(describe(path, content) for path, content in sorted(contents.items()))
    write_archive(target, msgspec.structs.replace(old, files=files, **manifest), contents)
    return target


def in_records(change: Callable[[dict[str, Any]], None]) -> Callable[[Path], None]:
    """Return a change of every record in an unpacked bundle, with what was stated of it."""

    def apply(folder: Path) -> None:
        for path in folder.glob("results/runs/*/*/run.json"):
            record, end = json.loads(path.read_text()), json.loads(path.with_name("end.json").read_text())
            change(record)
            end |= {"environment": record["environment"], "versions": record["versions"]}
            path.with_name("end.json").write_text(json.dumps(end))
            path.write_text(json.dumps({**record, "key": key_of(json.dumps(end).encode())}, indent=1))

    return apply


# --- records ---

CONFIGURATIONS = [{"x": 0.1}, {"x": 0.2}, {"x": 0.3}]
VALUES = [[0.5, 0.6], [0.7, 0.9], [0.4, 0.3]]
CPU = "CPU is A here, B in the bundle"  # a difference of numerics


def spec_of(**more: Any) -> RunSpec:
    """Return the specification of a run; keywords of the experiment, or of the run."""
    return make_spec(**{"trials": 3, "epochs": 2, "workers": Workers(count=1), **more})


def trial_of(spec: RunSpec, number: int, configuration: Mapping[str, Any], values: Sequence[float], **more: Any) -> TrialRecord:
    epochs = tuple(
        EpochRecord(epoch=place, ended_ns=10 * place, train_ns=5, validate_ns=1, metrics={"validation_accuracy": value})
        for place, value in enumerate(values, 1)
    )
    digest = configuration_digest(configuration)
    seed = derive_seed("trial", spec.seed, digest)
    attempt = AttemptRecord(
        attempt=1, state="completed", slot=0, started_ns=0, ended_ns=100, seed=seed, device="cpu", epochs=epochs
    )
    fields: dict[str, Any] = {
        "trial": f"t{number:05d}",
        "configuration": dict(configuration),
        "digest": digest,
        "state": "completed",
        "value": max(values),
        "value_epoch": 1 + list(values).index(max(values)),
        "attempts": (attempt,),
        **more,
    }
    return TrialRecord(**fields)


def environment(**more: Any) -> dict[str, Any]:
    """Return the environment of a record as `tuneoff.record.environment.capture` has it, of no machine that exists."""
    cpu = {"vendor": "V", "family": 1, "model": 2, "stepping": 3, "name": "CPU", "logical_count": 2}
    base = {
        "python": "3.11.1",
        "machine": "x86_64",
        "libc": "glibc 2.36",
        "host": "somewhere",
        "cpu": {**cpu, "instruction_sets": ["avx", "avx2"]},
        "accelerators": None,
        "cpus_available": [0, 1],
        "memory_total_bytes": 8_000_000_000,
        "kernel": "6.1",
        "versions": {"tuneoff": "0.1.0", "torch": "2.15.0"},
        "machine_before": {"load_1min": 0.0, "sentinel_ns": 20_000_000},
        "data": {"name": "d", "version": "1", "sha256": {}, "size_bytes": 0},
    }
    return {**base, **more}


def metric(value: float, unit: str = "ms", kind: Any = "measured", source: str = "events") -> MetricValue:
    return MetricValue(value=value, unit=unit, kind=kind, source=source)


def record_of(
    spec: RunSpec,
    *,
    configurations: Sequence[Mapping[str, Any]] = CONFIGURATIONS,
    values: Sequence[Sequence[float]] = VALUES,
    metrics: Mapping[str, MetricValue] | None = None,
    **more: Any,
) -> RunRecord:
    """Return the record of a run that is done."""
    trials = tuple(
        trial_of(spec, number, configuration, found)
        for number, (configuration, found) in enumerate(zip(configurations, values, strict=True))
    )
    chosen = max(trials, key=lambda trial: trial.value or 0.0)
    sha256 = hashlib.sha256(repr([spec.seed, chosen.digest, chosen.value]).encode()).hexdigest()
    found = {
        "time.jct": metric(1000.0 + spec.seed),
        "energy.cpu_seconds": metric(2.0, "s"),
        "energy.job": metric(5.0, "J", "estimated", "model"),
        "cost.job": metric(0.01, "USD", "declared", "prices"),
        "memory.peak_rss": metric(300.0, "MB"),
        "quality.validation": metric(chosen.value or 0.0, "validation_accuracy"),
        "quality.test": metric((chosen.value or 0.0) - 0.01, "test_accuracy"),
    }
    fields: dict[str, Any] = {
        "run_id": spec.run_id,
        "execution_id": f"{spec.run_id}-abc",
        "specification": run_spec_to_json(spec),
        "status": "done",
        "versions": {"framework": "none"},
        "environment": environment(),
        "trials": trials,
        "best": BestRecord(trial=chosen.trial, framework_value=chosen.value, known_ns=100, core_trial=chosen.trial),
        "test": TestRecord(
            trial=chosen.trial, scores={"test_accuracy": (chosen.value or 0.0) - 0.01}, tested_ns=200, checkpoint_sha256=sha256
        ),
        "metrics": {**found, **(metrics or {})},
        **more,
    }
    return RunRecord(**fields)


def answers(columns: Iterable[ReproducedColumn]) -> dict[str, str]:
    """Return the answer of each column by its name."""
    return {column.name: column.answer.value for column in columns}


def with_trial(record: RunRecord, number: int, **fields: Any) -> RunRecord:
    """Return the record with fields of one trial replaced."""
    trials = list(record.trials)
    trials[number] = replace(trials[number], **fields)
    return replace(record, trials=tuple(trials))


def pair_of(here: RunRecord, bundle: RunRecord | None = None, spec: RunSpec | None = None, **more: Any) -> RunPair:
    """Return a record and the bundle's, of one run that is the default one."""
    own = spec or spec_of()
    return RunPair(
        where="a run", spec=own, sampler=own.experiment.sampler.name, bundle=bundle or record_of(own), here=here, **more
    )
