"""Open a bundle: unpack it to a temporary folder, check it, read what it holds, and remove the folder again."""

from __future__ import annotations

import hashlib
import tempfile
from dataclasses import dataclass
from pathlib import Path

from tuneoff.base.files import open_regular, without_links
from tuneoff.base.interrupting import interrupting
from tuneoff.errors import ResultsError
from tuneoff.experiment.plan import Plan
from tuneoff.record.results_folder import read_plan
from tuneoff.record.run_record import RunRecord
from tuneoff.record.store import read_runs, standing
from tuneoff.trust.bundle.archive import unpack
from tuneoff.trust.bundle.manifest import RESULTS, BundleManifest
from tuneoff.trust.bundle.readable import is_readable
from tuneoff.trust.verify.results import verify


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
