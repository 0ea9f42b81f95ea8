"""Open a bundle: unpack it to a temporary folder, check it, read what it holds, and remove the folder again."""

from __future__ import annotations

import hashlib
import tempfile
from dataclasses import dataclass
from pathlib import Path

from tuneoff.bundle.archive import unpack
from tuneoff.bundle.manifest import RESULTS, Manifest
from tuneoff.errors import ResultsError, TuneoffError
from tuneoff.matrix.folder import read_plan, standing
from tuneoff.matrix.plan import Plan
from tuneoff.records.model import RunRecord
from tuneoff.records.store import read_runs
from tuneoff.verify.results import verify


@dataclass(frozen=True, slots=True, kw_only=True)
class Bundle:
    """What a bundle holds: its manifest, the plan, and by run id the execution that stands for each run.

    `problems`: what does not follow from the raw files in it, recomputed now. `seals_hold`: the raw files are those that the
    records were sealed with.
    """

    path: Path
    sha256: str
    manifest: Manifest
    plan: Plan
    records: dict[str, RunRecord]
    problems: tuple[str, ...]
    seals_hold: bool


def open_bundle(path: Path, limit_bytes: int) -> Bundle:
    """Check and read a bundle; nothing of it stays on the disk.

    Raises:
        ResultsError: it is no bundle, truncated, changed, of another version, above the limit, or there is no space.
    """
    try:
        with tempfile.TemporaryDirectory(prefix="tuneoff-bundle-") as temporary:
            folder = Path(temporary)
            manifest = unpack(path, folder, limit_bytes)
            with path.open("rb") as file:
                digest = hashlib.file_digest(file, "sha256").hexdigest()
            results = folder / RESULTS
            plan = read_plan(results)
            problems = [
                problem
                for problem in verify(results).problems
                if manifest.checkpoints or not (problem.what.startswith("checkpoints/") and problem.text.startswith("is missing"))
            ]
            records = standing([_checked(record) for record in read_runs(results)])
    except ResultsError as error:
        text = str(error).replace(f"{temporary}/{RESULTS}", RESULTS)
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
    """Return a record whose environment and specification can be read: what run.json alone states, nothing else checks.

    Raises:
        ResultsError: it was damaged or made up.
    """
    environment = record.environment
    parts = [environment.get(name) for name in ("versions", "cpu", "data", "workload", "machine_before")]
    data = environment.get("data")
    digests = data.get("sha256") if isinstance(data, dict) else None
    cpu = environment.get("cpu")
    sets = cpu.get("instruction_sets") if isinstance(cpu, dict) else None
    memory = environment.get("memory_total_bytes")
    sound = (
        all(part is None or isinstance(part, dict) for part in parts)
        and (digests is None or (isinstance(digests, dict) and all(isinstance(value, str) for value in digests.values())))
        and (sets is None or (isinstance(sets, list) and all(isinstance(item, str) for item in sets)))
        and (memory is None or (isinstance(memory, int | float) and not isinstance(memory, bool)))
    )
    try:
        record.run_spec()
    except (KeyError, TypeError, ValueError, AttributeError, TuneoffError):
        sound = False
    if not sound:
        raise ResultsError(f"{RESULTS}: the record of {record.execution_id[:60]!r} is damaged; get the bundle again")
    return record
