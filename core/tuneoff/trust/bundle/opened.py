"""Open a bundle: unpack it to a temporary folder, check it, read what it holds, and remove the folder again."""

from __future__ import annotations

import hashlib
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tuneoff.base.files import open_regular, without_links
from tuneoff.base.interrupting import interrupting
from tuneoff.errors import ResultsError, TuneoffError
from tuneoff.experiment.plan import Plan
from tuneoff.record.results_folder import read_plan
from tuneoff.record.run_record import RunRecord
from tuneoff.record.store import read_runs, standing
from tuneoff.trust.bundle.archive import unpack
from tuneoff.trust.bundle.manifest import RESULTS, BundleManifest
from tuneoff.trust.verify.results import verify

GREATEST = 1e18  # of a number of bytes or ns: more is none, and a larger integer breaks arithmetic with decimal ones
_OBJECTS = ("versions", "cpu", "data", "workload", "machine_before")


@dataclass(frozen=True, slots=True, kw_only=True)
class Bundle:
    """What a bundle holds: its manifest, the plan, and by run id the execution that stands for each run.

    `problems`: what does not follow from the raw files in it, recomputed now. `seals_hold`: the raw files are those that the
    records were sealed with.
    """

    path: Path
    sha256: str
    manifest: BundleManifest
    plan: Plan
    records: dict[str, RunRecord]
    problems: tuple[str, ...]
    seals_hold: bool


def open_bundle(path: Path, limit_bytes: int) -> Bundle:
    """Check and read a bundle; nothing of it stays on the disk, also where a signal ends the command.

    Raises:
        KeyboardInterrupt: SIGINT, SIGTERM or SIGHUP.
        ResultsError: it is no bundle, truncated, changed, of another version, above the limit, or there is no space.
    """
    try:
        with interrupting(), tempfile.TemporaryDirectory(prefix="tuneoff-bundle-") as temporary:
            folder = without_links(Path(temporary))
            manifest = unpack(path, folder, limit_bytes)
            with open_regular(path, follow=True) as file:
                digest = hashlib.file_digest(file, "sha256").hexdigest()
            results = folder / RESULTS
            plan = read_plan(results)
            problems = [
                problem
                for problem in verify(results).problems
                if manifest.checkpoints or not (problem.what.startswith("checkpoints/") and problem.text.startswith("is missing"))
            ]
            records = standing(_checked(record) for record in read_runs(results))
    except ResultsError as error:
        text = str(error).replace(str(folder / RESULTS), RESULTS)
        raise type(error)(text if str(path) in text else f"{path}: {text}") from error
    except OSError as error:
        raise ResultsError(f"{path} cannot be unpacked: {error.strerror}; set TMPDIR to a folder with space") from error
    return Bundle(
        path=path,
        sha256=digest,
        manifest=manifest,
        plan=plan,
        records=records,
        problems=tuple(problem.line.replace(f"{temporary}/", "") for problem in problems),
        seals_hold=all(problem.check != "seal" for problem in problems),
    )


def _checked(record: RunRecord) -> RunRecord:
    if not is_readable(record):
        raise ResultsError(f"{RESULTS}: the record of {record.execution_id[:60]!r} is damaged; get the bundle again")
    return record


def is_readable(record: RunRecord) -> bool:
    """Tell whether environment and specification have the types that bundles rely on."""
    environment = record.environment
    objects = {name: environment.get(name) for name in _OBJECTS}
    if not all(part is None or isinstance(part, dict) for part in objects.values()):
        return False
    data, cpu, workload, before = (objects[name] or {} for name in ("data", "cpu", "workload", "machine_before"))
    digests, sets = data.get("sha256"), cpu.get("instruction_sets")
    return (
        (digests is None or (isinstance(digests, dict) and _are_texts(digests.values())))
        and (sets is None or (isinstance(sets, list) and _are_texts(sets)))
        and all(map(_is_number, (environment.get("memory_total_bytes"), before.get("sentinel_ns"))))
        and isinstance(workload.get("sha256"), str | None)
        and all((objects["versions"] or {}).keys())
        and _has_specification(record)
    )


def _has_specification(record: RunRecord) -> bool:
    try:
        record.run_spec()
    except (KeyError, TypeError, ValueError, AttributeError, TuneoffError):
        return False
    return True


def _is_number(value: Any) -> bool:
    return value is None or (isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < GREATEST)


def _are_texts(values: Any) -> bool:
    return all(isinstance(value, str) for value in values)
