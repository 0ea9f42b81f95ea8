"""Pack a results folder into one archive: verified first, refused where it holds a secret, what is missing stated."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tuneoff
from tuneoff.bundle import manifest as names
from tuneoff.bundle.archive import describe, write_archive
from tuneoff.bundle.code import code_digest
from tuneoff.bundle.contents import executions, result_files
from tuneoff.bundle.describe import data_of, environments_of, missing_of, readme, tells_of
from tuneoff.bundle.lock import lock_of, lock_text
from tuneoff.bundle.manifest import Manifest, top_folder
from tuneoff.bundle.secrets import check_no_secrets
from tuneoff.errors import ResultsError
from tuneoff.experiment.names import label_texts, run_name
from tuneoff.matrix.folder import LOCK, read_plan, run_ends
from tuneoff.matrix.plan import Plan
from tuneoff.verify.exports import FOLDER as EXPORTS
from tuneoff.verify.results import Verification, verify

SUFFIX = ".tar.gz"
PROBLEMS = 5  # that the manifest of an unverified bundle names
Note = Callable[[str], None]
_NO_CHECKPOINTS = "Checkpoints of the tested models are not included, only their SHA-256: tuneoff verify says they are missing."


class UnverifiedError(ResultsError):
    """The folder's numbers do not follow from its raw files."""

    exit_code = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Packed:
    """A bundle that was written."""

    path: Path
    sha256: str
    size_bytes: int
    manifest: Manifest


def pack(
    results: Path, target: Path, *, checkpoints: bool, allow_unverified: bool, limit_bytes: int, note: Note = lambda text: None
) -> Packed:
    """Write the bundle of a results folder; `note` is told what is about to be written.

    Raises:
        UnverifiedError: the folder is not verified, and `allow_unverified` is False.
        ResultsError: it is no results folder, is in use, holds a secret, is above the limit, or the target cannot be written.
    """
    with _held(results):
        plan = read_plan(results)
        problems = _problems(verify(results))
        if problems and not allow_unverified:
            more = f" and {len(problems) - 1} more" if len(problems) > 1 else ""
            raise UnverifiedError(
                f"{results} is not verified: {problems[0]}{more}; see tuneoff verify, or add --allow-unverified"
            )
        found = executions(results)
        ends = run_ends(results, plan)
        missing = tuple(missing_of(ends, found, _names(plan)))
        contents = result_files(results, found, checkpoints=checkpoints)
        lock = lock_of(found)
        contents |= {
            names.LOCK_JSON: _json(lock),
            names.LOCK_TXT: lock_text(lock).encode(),
            names.DATA: _json(data_of(found)),
            names.ENVIRONMENT: _json(environments_of(found)),
            names.EXPERIMENT: _json(dict(plan.content)),
        }
        done = sum(end.status == "done" for end in ends)
        facts = [
            f"{done} of {len(ends)} planned runs are done; {len(found)} executions, made by tuneoff {_versions(lock)}.",
            _verified(problems),
            "Checkpoints of the tested models are included." if checkpoints else _NO_CHECKPOINTS,
        ]
        contents[names.README] = readme(plan, facts, missing, tells_of(plan, found)).encode()
        check_no_secrets(contents)
        files = tuple(describe(path, contents[path]) for path in sorted(contents))
        made = Manifest(
            name=top_folder(plan.name),
            plan_id=plan.plan_id,
            tuneoff=tuneoff.__version__,
            tuneoff_code=code_digest(),
            verified=not problems,
            problems=tuple(problems[:PROBLEMS]),
            checkpoints=checkpoints,
            missing=missing,
            files=files,
        )
        note(f"{len(files)} files of {made.size_bytes / 1e6:.1f} MB, a tenth to a half of that when packed; {_missing(missing)}")
        if made.size_bytes > limit_bytes:
            limit = f"{limit_bytes / 1e6:.0f} MB"
            raise ResultsError(
                f"the bundle would hold {made.size_bytes / 1e6:.0f} MB, but the limit is {limit}; raise --limit-mb"
            )
        digest = write_archive(target, made, contents)
    return Packed(path=target, sha256=digest, size_bytes=target.stat().st_size, manifest=made)


@contextlib.contextmanager
def _held(results: Path) -> Iterator[None]:
    """Keep commands off the folder while it is read; nothing is written to it."""
    try:
        descriptor = os.open(results / LOCK, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:  # a folder that was copied without its lock
        yield
        return
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise ResultsError(f"{results} is in use by another tuneoff command; bundle it when that has ended") from error
        except OSError:  # a file system without locks
            pass
        yield
    finally:
        os.close(descriptor)


def _problems(found: Verification) -> list[str]:
    """Return the problems of what goes into a bundle: exports do not."""
    return [problem.line for problem in found.problems if problem.where.partition("/")[0] != EXPORTS]


def _names(plan: Plan) -> dict[str, str]:
    labels = label_texts((run.label, run.spec.adapter) for run in plan.runs)
    return {run.run_id: run_name(labels[run.label], run.spec) for run in plan.runs}


def _versions(lock: Mapping[str, Any]) -> str:
    return ", ".join(lock["recorded"].get("tuneoff", ())) or "of an unknown version"


def _verified(problems: list[str]) -> str:
    if not problems:
        return "Verified when it was made: every number follows from the raw events, samples and prices."
    return f"NOT VERIFIED when it was made: {problems[0]} ({len(problems)} in all)."


def _missing(missing: tuple[str, ...]) -> str:
    return f"{len(missing)} things are missing, see {names.README}" if missing else "nothing is missing"


def _json(value: Any) -> bytes:
    return (json.dumps(value, indent=1, sort_keys=True, ensure_ascii=False) + "\n").encode()
