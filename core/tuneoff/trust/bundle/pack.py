"""Pack a results folder into one archive: verified first, refused where it holds a secret, what is missing stated."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tuneoff
from tuneoff.base.code_digest import code_digest
from tuneoff.base.files import open_regular
from tuneoff.base.interrupting import interrupting
from tuneoff.base.layout import EXPORT
from tuneoff.errors import ResultsError
from tuneoff.experiment.names import run_name
from tuneoff.experiment.plan import Plan
from tuneoff.record.environment import SECRET_NAME
from tuneoff.record.results_folder import read_plan, reading
from tuneoff.run.run_ends import run_ends
from tuneoff.trust.bundle import manifest as names
from tuneoff.trust.bundle.archive import Content, describe, read_manifest, write_archive
from tuneoff.trust.bundle.describe import (
    data_of,
    environments_of,
    executions,
    lock_of,
    lock_text,
    missing_of,
    readme,
    result_files,
    tells_of,
)
from tuneoff.trust.bundle.manifest import BundleManifest, top_folder, wrong_files
from tuneoff.trust.verify.results import verify

_PASSWORD = re.compile(  # which stands for none where it is a $NAME; Redis has no user before it
    rb"[a-z0-9+.-]://[^\s/@:\"']*:(?!\$(?:\w+|\{\w+\})@)[^\s/@\"']+@", re.IGNORECASE
)
PIECE, OVERLAP = 16_000_000, 100_000  # bytes: no secret and no address is longer than the second
SHORTEST = 8  # characters: shorter values occur by chance
SUFFIX = ".tar.gz"
PROBLEMS = 5  # that the manifest of an unverified bundle names
Note = Callable[[str], None]
_VERIFIED = "Verified when it was made: every number follows from the raw events, samples and prices."
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
    manifest: BundleManifest


def pack(
    results: Path, target: Path, *, checkpoints: bool, allow_unverified: bool, limit_bytes: int, note: Note = lambda text: None
) -> Packed:
    """Write the bundle of a results folder; `note` is told what is about to be written, and what it replaces.

    An existing target is replaced only if it is an earlier bundle of the same plan.

    Raises:
        UnverifiedError: the folder is not verified, and `allow_unverified` is False.
        ResultsError: it is not a results folder, is in use, holds a secret, is above the limit, or the target is there or
            cannot be written.
    """
    with reading(results) as is_free:
        if not is_free:
            raise ResultsError(f"{results} is in use by another tuneoff command; bundle it when that has ended")
        plan = read_plan(results)
        _check_target(target, plan, note)
        problems = [
            problem.line
            for problem in verify(results).problems
            if problem.where.partition("/")[0] != EXPORT  # which are not bundled
        ]
        if problems and not allow_unverified:
            more = f" and {len(problems) - 1} more" if len(problems) > 1 else ""
            raise UnverifiedError(
                f"{results} is not verified: {problems[0]}{more}; see tuneoff verify, or add --allow-unverified"
            )
        by_folder = executions(results)
        ends = run_ends(results, plan)
        missing = tuple(missing_of(ends, by_folder, _names(plan)))
        contents = result_files(results, by_folder, checkpoints=checkpoints)
        lock = lock_of(by_folder)
        contents |= {
            names.LOCK_JSON: _json(lock),
            names.LOCK_TXT: _bytes(lock_text(lock)),
            names.DATA: _json(data_of(by_folder)),
            names.ENVIRONMENT: _json(environments_of(by_folder)),
            names.EXPERIMENT: _json(dict(plan.content)),
        }
        done = sum(end.status == "done" for end in ends)
        versions = ", ".join(lock["recorded"].get("tuneoff", ())) or "of an unknown version"
        facts = [
            f"{done} of {len(ends)} planned runs are done; {len(by_folder)} executions, made by tuneoff {versions}.",
            f"NOT VERIFIED when it was made: {problems[0]} ({len(problems)} in all)." if problems else _VERIFIED,
            "Checkpoints of the tested models are included." if checkpoints else _NO_CHECKPOINTS,
        ]
        contents[names.README] = _bytes(readme(plan, facts, missing, tells_of(plan, by_folder)))
        _check_size(contents, limit_bytes)  # before anything is read
        check_no_secrets(contents)
        files = tuple(describe(path, contents[path]) for path in sorted(contents))
        if (wrong := next(wrong_files(files), None)) is not None:
            raise ResultsError(f"{results} cannot be bundled: {wrong}; rename or remove it")
        manifest = BundleManifest(
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
        lacks = f"{len(missing)} things are missing, see {names.README}" if missing else "nothing is missing"
        note(f"{len(files)} files of {manifest.size_bytes / 1e6:.1f} MB, a tenth to a half of that when packed; {lacks}")
        with interrupting():
            digest = write_archive(target, manifest, contents)
    return Packed(path=target, sha256=digest, size_bytes=target.stat().st_size, manifest=manifest)


def _check_size(contents: Mapping[str, Content], limit_bytes: int) -> None:
    sizes = {path: item.stat().st_size if isinstance(item, Path) else len(item) for path, item in contents.items()}
    needed = sum(names.disk_bytes(path, size) for path, size in sizes.items())
    if needed > limit_bytes:
        size, limit = (f"{size / 1e6:.0f} MB" for size in (needed, limit_bytes))
        raise ResultsError(f"the bundle would unpack to {size}, but the limit is {limit}; raise --limit-mb")


def _check_target(target: Path, plan: Plan, note: Note) -> None:
    """Refuse a target that is there already, unless it is an earlier bundle of the same plan: that one is replaced."""
    if os.path.isdir(target):
        raise ResultsError(f"{target} is a folder; give --output a file's name")
    if not os.path.lexists(target):
        return
    way_out = "remove it or choose another --output"
    try:
        earlier = read_manifest(target)
    except ResultsError as error:
        raise ResultsError(f"{target} is there already, and no bundle that this tuneoff makes; {way_out}") from error
    if earlier.plan_id != plan.plan_id:
        raise ResultsError(f"{target} is there already, a bundle of other results ({earlier.name}); {way_out}")
    note(f"{target} is an earlier bundle of the same plan, and is replaced")


def _names(plan: Plan) -> dict[str, str]:
    labels = plan.label_texts
    return {run.run_id: run_name(labels[run.label], run.spec) for run in plan.runs}


def _json(value: Any) -> bytes:
    return _bytes(json.dumps(value, indent=1, sort_keys=True, ensure_ascii=False) + "\n")


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "backslashreplace")  # half a character, as only JSON escapes can write it


def check_no_secrets(contents: Mapping[str, Content], environment: Mapping[str, str] | None = None) -> None:
    """Refuse contents in which a secret of this environment, or an address with a password, occurs.

    Raises:
        ResultsError: one does; the line names the file and the variable, never the value.
    """
    values = os.environ if environment is None else environment
    secrets = {
        name: value.encode()
        for name, value in values.items()
        if SECRET_NAME.search(name) and len(value) >= SHORTEST and not os.path.exists(value)
    }
    for path, content in contents.items():
        if path.endswith(".safetensors"):  # numbers
            continue
        for piece in _pieces(content):
            held = [f"the value of the environment variable {name}" for name, value in secrets.items() if value in piece]
            if _PASSWORD.search(piece):
                held.append("an address with a password")
            if held:
                raise ResultsError(f"{path} holds {held[0]}; a bundle is for others: remove it from the experiment and run again")


def _pieces(content: Content) -> Iterator[bytes]:
    """Yield a content in pieces that overlap, so that a file of any size takes little memory."""
    if not isinstance(content, Path):
        yield content
        return
    tail = b""
    with open_regular(content) as file:
        while part := file.read(PIECE):
            yield tail + part
            tail = (tail + part)[-OVERLAP:]
