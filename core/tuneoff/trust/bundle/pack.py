"""Pack a results folder into one archive: verified first, refused where it holds a secret, what is missing stated.

Beside the results it says of itself: data digests, environments, its lock of packages, and a text for a person.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tuneoff
from tuneoff.base.code_digest import code_digest
from tuneoff.base.files import open_regular, regular
from tuneoff.base.identity import canonical_json
from tuneoff.base.interrupting import interrupting
from tuneoff.base.layout import END, EVENTS, EXPORT, LATER, PLAN, RECORD, RUNS
from tuneoff.errors import ResultsError
from tuneoff.experiment.names import run_name
from tuneoff.experiment.plan import Plan
from tuneoff.measure.stored import read_run
from tuneoff.record.end import BESIDE
from tuneoff.record.environment import SECRET_NAME
from tuneoff.record.results_folder import read_plan, reading
from tuneoff.record.run_record import RunRecord
from tuneoff.run.run_ends import RunEnd, run_ends
from tuneoff.run.trial.checkpoint import checkpoint_path
from tuneoff.trust.bundle import manifest as names
from tuneoff.trust.bundle.archive import Content, describe, read_manifest, write_archive
from tuneoff.trust.bundle.manifest import BundleManifest, top_folder, wrong_files
from tuneoff.trust.bundle.opened import is_readable
from tuneoff.trust.official import PAGE, official
from tuneoff.trust.verify.results import verify

_PASSWORD = re.compile(  # which stands for none where it is a $NAME; Redis has no user before it
    rb"[a-z0-9+.-]://[^\s/@:\"']*:(?!\$(?:\w+|\{\w+\})@)[^\s/@\"']+@", re.IGNORECASE
)
PIECE, OVERLAP = 16_000_000, 100_000  # bytes: no secret and no address is longer than the second
SHORTEST = 8  # characters: shorter values occur by chance
SUFFIX = ".tar.gz"
WAY_OUT = "remove it or choose another --output"
PROBLEMS = 5  # that the manifest of an unverified bundle names
Note = Callable[[str], None]
_VERIFIED = "Verified when it was made: every number follows from the raw events, samples and prices."
_NO_CHECKPOINTS = "Checkpoints of the tested models are not included, only their SHA-256."
SINGLE = (END, RECORD, *BESIDE)  # of an execution, where they are there
LEFT_OUT = "log.txt, the framework's own files, exports, locks and notes of processes"
OWN = "tuneoff"  # comes from a clone, not from the index
_VOLATILE = ("load_average_1min", "memory_available_bytes", "machine_before", "after", "data", "analysis_digest", "boot_id")


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
            raise ResultsError(f"{results} is in use by another tuneoff command; bundle it after that ends")
        plan = read_plan(results)
        if os.path.isdir(target):
            raise ResultsError(f"{target} is a folder; give --output a file's name")
        if os.path.lexists(target):
            try:
                earlier = read_manifest(target)
            except ResultsError as error:
                raise ResultsError(f"{target} exists and is not a bundle of this tuneoff; {WAY_OUT}") from error
            if earlier.plan_id != plan.plan_id:
                raise ResultsError(f"{target} exists: a bundle of other results ({earlier.name}); {WAY_OUT}")
            note(f"{target} is an earlier bundle of the same plan, and is replaced")
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
        records = [record for record in by_folder.values() if record is not None]
        ends = run_ends(results, plan)
        labels = plan.label_texts
        run_names = {run.run_id: run_name(labels[run.label], run.spec) for run in plan.runs}
        missing = tuple(missing_of(ends, by_folder, run_names))
        contents = result_files(results, by_folder, checkpoints=checkpoints)
        lock = lock_of(records)
        contents |= {names.LOCK_JSON: _json(lock), names.LOCK_TXT: _bytes(lock_text(lock))}
        answer = official(results)
        contents |= {names.EXPERIMENT: _json(dict(plan.content)), **described_runs(records), **answer}
        done = sum(end.status == "done" for end in ends)
        versions = ", ".join(lock["recorded"].get("tuneoff", ())) or "of an unknown version"
        facts = [
            f"{done} of {len(ends)} planned runs are done; {len(by_folder)} executions, made by tuneoff {versions}.",
            f"NOT VERIFIED when it was made: {problems[0]} ({len(problems)} in all)." if problems else _VERIFIED,
            "Checkpoints of the tested models are included." if checkpoints else _NO_CHECKPOINTS,
        ]
        contents[names.README] = _bytes(readme(plan, facts, missing))
        sizes = {path: item.stat().st_size if isinstance(item, Path) else len(item) for path, item in contents.items()}
        needed = sum(names.disk_bytes(path, size) for path, size in sizes.items())
        if needed > limit_bytes:  # before anything is read
            size, limit = (f"{size / 1e6:.0f} MB" for size in (needed, limit_bytes))
            raise ResultsError(f"the bundle would unpack to {size}, but the limit is {limit}; raise --limit-mb")
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
        page = f"the page has {len(answer[PAGE]) / 1e6:.2f} MB"
        note(f"{len(files)} files of {manifest.size_bytes / 1e6:.1f} MB, a tenth to a half of that when packed; {page}; {lacks}")
        with interrupting():
            digest = write_archive(target, manifest, contents)
    return Packed(path=target, sha256=digest, size_bytes=target.stat().st_size, manifest=manifest)


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
                raise ResultsError(f"{path} holds {held[0]}; a bundle is shared: remove it from the experiment and run again")


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


Executions = Mapping[Path, RunRecord | None]  # by folder; None: its command was killed before it had a record


def executions(results: Path) -> Executions:
    """Return every execution in a fixed order.

    Raises:
        ResultsError: a folder or record cannot be read.
    """
    try:
        folders = sorted(path for path in (results / RUNS).glob("*/*") if path.is_dir())
        by_folder = {path: read_run(path) if (path / END).exists() else None for path in folders}
    except OSError as error:
        raise ResultsError(f"{results} cannot be read: {error.strerror}") from error
    for folder, record in by_folder.items():
        if record is not None and not is_readable(record):
            raise ResultsError(f"{folder / END} is damaged: its environment cannot be read; run it again")
    return by_folder


def result_files(results: Path, by_folder: Executions, *, checkpoints: bool) -> dict[str, Content]:
    """Return the files of a results folder that a bundle holds, by their path in the bundle.

    Raises:
        ResultsError: one cannot be read, or is not a plain file (a link could hold what is not meant for others).
    """
    paths = [results / PLAN]
    for folder, record in by_folder.items():
        paths += (folder / name for name in SINGLE if (folder / name).exists())
        for events in (folder / EVENTS, folder / LATER / EVENTS):
            if events.is_dir():
                paths += sorted(events.iterdir())
        if checkpoints and record is not None and record.test is not None and record.test.checkpoint_sha256 is not None:
            path = checkpoint_path(folder, record.test.trial)
            if path.exists():
                paths.append(path)
    for path in paths:
        try:
            with regular(path):
                pass
        except OSError as error:
            raise ResultsError(f"{path} cannot be bundled: {error.strerror}; replace or remove it") from error
    return {f"{names.RESULTS}/{path.relative_to(results).as_posix()}": path for path in paths}


def described_runs(records: Sequence[RunRecord]) -> dict[str, bytes]:
    """Return the files on the runs: which used which data, with the SHA-256 of each file, and which ran in which environment."""
    sets: dict[str, dict[str, Any]] = {}
    environments: dict[str, dict[str, Any]] = {}  # without what changes from run to run
    for record in records:
        data = record.environment.get("data")
        if isinstance(data, Mapping):
            identity = {name: data.get(name) for name in ("name", "version", "sha256", "size_bytes")}
            entry = sets.setdefault(canonical_json(identity), {**identity, "runs": []})
            if record.run_id not in entry["runs"]:
                entry["runs"].append(record.run_id)
        kept = {name: value for name, value in record.environment.items() if name not in _VOLATILE}
        entry = environments.setdefault(canonical_json(kept), {"environment": kept, "executions": []})
        entry["executions"].append(record.execution_id)
    entries = {names.DATA: sets, names.ENVIRONMENT: environments}
    return {name: _json([different[key] for key in sorted(different)]) for name, different in entries.items()}


def missing_of(ends: Sequence[RunEnd], by_folder: Executions, names: Mapping[str, str]) -> list[str]:
    """Return what the plan has and the results lack, one line each."""
    lines = []
    for end in ends:
        if end.status != "done":
            why = f": {' '.join(end.reason.split())}" if end.reason else ""
            status = "not begun" if end.status == "planned" else end.status
            lines.append(f"run {end.run_id} ({names.get(end.run_id, end.label)}) is {status}{why}")
    for folder, record in by_folder.items():
        if record is None:
            name = folder.name.encode("utf-8", "backslashreplace").decode()
            lines.append(f"execution {name} has no record: its command was killed before it had one")
    return lines


def readme(plan: Plan, lines: Sequence[str], missing: Sequence[str]) -> str:
    """Return the text for a person. `lines`: facts of the bundle."""
    return "\n".join(
        [
            f"A bundle of tuneoff results: {plan.name} (plan {plan.plan_id}).",
            "",
            *lines,
            "",
            "To run a part of it again and compare:   tuneoff reproduce THIS_FILE.tar.gz",
            "With a training that is not an installed plugin: unpack where its module is, then   tuneoff compare experiment.json",
            "To look at it: unpack it; results/ is a results folder for tuneoff watch --runs, verify and export.",
            "",
            "  answer.json, .txt  the answer, made from results/ alone: tuneoff verify THIS_FILE.tar.gz makes it again",
            "  report.html        the page, likewise",
            "  manifest.json      SHA-256 of every file, format version, what is missing",
            "  experiment.json    the experiment file, includes merged",
            "  lock.txt, .json    versions of the packages that served the runs",
            "  environment.json   machine and versions of the runs",
            "  data.json          the data sets with the SHA-256 of each file; the data themselves are not here",
            "  results/           the plan with every run's specification, and of each execution: record, raw events,",
            "                     samples of power and CPU, prices and carbon intensity, test result",
            "",
            f"Left out: {LEFT_OUT}.",
            "",
            "Missing:",
            *([f"  {line}" for line in missing] or ["  nothing: every planned run is done"]),
            "",
            "What it reveals about the machine and the person (nothing is anonymous: raw files are sealed as written):",
            "  host names, boot ids, kernel, CPU, memory, paths, names of processes, addresses, the repository of the workload",
            "  environment variables: only the numbers of threads",
            "",
        ]
    )


def lock_of(records: Sequence[RunRecord]) -> dict[str, Any]:
    """Return the lock as JSON values.

    `recorded`: package -> versions, as the runs' own records have them: of all packages, of earlier records of some.
    `environments`: of those that adapters have of their own Python and all packages, by what they are called.
    """
    environments = {}
    packages: dict[str, set[str]] = {}
    pythons: set[str] = set()
    for record in records:
        spec, environment = record.run_spec(), record.environment
        if spec.environment is not None:
            facts = {name: environment.get(name) for name in ("python", "distributions")}
            environments[f"{spec.adapter}{spec.environment.text}"] = facts
            continue
        if isinstance(environment.get("python"), str):
            pythons.add(environment["python"])
        for name, version in (environment.get("distributions") or environment.get("versions") or {}).items():
            if isinstance(version, str):
                packages.setdefault(name, set()).add(version)
    recorded = {name: sorted(packages[name]) for name in sorted(packages)}
    return {"python": sorted(pythons), "recorded": recorded, **({"environments": environments} if environments else {})}


def lock_text(lock: Mapping[str, Any]) -> str:
    """Return the lock as a requirements file."""
    lines = [f"# of {name}, in an environment of its own: see lock.json" for name in lock.get("environments", ())]
    lines += [f"# Python {', '.join(lock['python']) or 'unknown'}", "# as the runs recorded it:"]
    for name, versions in lock["recorded"].items():
        line = f"{name}=={versions[0]}"
        if name == OWN:
            line = f"# {line} (from its repository)"
        elif len(versions) > 1:
            line = f"# {name}: the runs had different versions: {', '.join(versions)}"
        lines.append(line)
    return "\n".join(lines) + "\n"
