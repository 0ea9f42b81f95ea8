"""Verify one execution: derive its record anew from its folder, and hold the stored one to it."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import msgspec

import tuneoff
from tuneoff.base.files import odd_entries, read_regular
from tuneoff.errors import ResultsError, TuneoffError
from tuneoff.experiment.spec import RunSpec, run_spec_from_json
from tuneoff.measure.derived import Derived, derive_folder
from tuneoff.record.endings import IN_NO_EVENT, Ruling
from tuneoff.record.events.writer import FOLDER as EVENTS
from tuneoff.record.layout import FRAMEWORK, SealedFile
from tuneoff.record.run_record import FORMAT_VERSION, RunRecord
from tuneoff.record.samples.schema import FILE_NAME as SAMPLES
from tuneoff.record.store import FILE_NAME, broken_seals, compare_seals
from tuneoff.trust.history_check.rules import check_run
from tuneoff.trust.verify.consistency import WatchedLog, clock_faults, wrong_sums
from tuneoff.trust.verify.findings import (
    TOO_DEEP,
    VerifiedExecution,
    count_values,
    is_same_text,
    load_json,
    record_differences,
    version_problem,
)
from tuneoff.trust.verify.other_files import file_faults
from tuneoff.trust.verify.planned import PlanExpectation, check_charge, check_frozen

STATED = ("versions", "environment")
_decoder = msgspec.json.Decoder(RunRecord)


class _Given(msgspec.Struct, kw_only=True):
    """What is taken from the stored record: what it identifies, and what it alone states."""

    run_id: str
    execution_id: str
    specification: dict[str, Any]
    status: str
    reason: str | None = None
    charged: str | None = None
    emulated: bool = False
    versions: dict[str, Any] = {}
    environment: dict[str, Any] = {}
    sealed: tuple[SealedFile, ...] = ()
    format_version: int

    @property
    def tuneoff_version(self) -> str | None:
        """The version that wrote the record, as far as it says so."""
        versions = self.environment.get("versions")
        version = versions.get("tuneoff") if isinstance(versions, dict) else None
        return version if isinstance(version, str) else None


class _Version(msgspec.Struct):
    format_version: Any = None


class Task(NamedTuple):
    """One execution to be verified: its folder, the path of that in the results folder, and what the plan says of it."""

    folder: Path
    where: str
    expected: PlanExpectation


def verify_execution(task: Task) -> VerifiedExecution:
    """Recompute the record of an execution's folder and return all that is not as it must be."""
    folder, where, expected = task
    outcome = VerifiedExecution(where=where, run_id=folder.parent.name, execution_id=folder.name)
    try:
        for path, kind in odd_entries(folder, besides=FRAMEWORK):
            outcome.has_special_files = True
            outcome.add("file", path.relative_to(folder).as_posix(), f"is {kind}, and must be a file")
        content = _content(folder, outcome) if not outcome.has_special_files else None
        given = _given(content, outcome) if content is not None else None
        if content is not None and given is not None:
            outcome.status = given.status
            _verify(folder, content, given, expected, outcome)
    except RecursionError:
        outcome.add("schema", "", f"a file {TOO_DEEP}")
    outcome.close()
    return outcome


def _verify(folder: Path, content: bytes, given: _Given, expected: PlanExpectation, outcome: VerifiedExecution) -> None:
    """Hold an execution to its files; `content`: of its run.json."""
    spec = _specification(given, outcome)
    found = _derive(folder, content, spec, given, expected, outcome) if spec is not None else None
    _check_seals(folder, given, found[1].record if found is not None else None, outcome)
    if found is None:
        return
    log, derived = found
    record, samples = derived.record, derived.evidence.samples
    outcome.trials, outcome.events, outcome.values = len(record.trials), record.events, count_values(record)
    if samples is not None:
        outcome.samples = samples.power_samples + len(samples.usage)
    _compare(content, record, given, outcome)
    _check_times(log, derived, outcome)
    outcome.add_all("file", file_faults(folder, record))
    for broken in check_run(folder, record):
        outcome.add("history", broken.rule, broken.line, shown_by=broken)
    check_charge(derived, expected, outcome)
    outcome.add_all("sum", wrong_sums(record.metrics, derived.account))
    check_frozen(given.environment, expected, outcome)


def _content(folder: Path, outcome: VerifiedExecution) -> bytes | None:
    try:
        return read_regular(folder / FILE_NAME)
    except OSError as error:
        outcome.add("file", FILE_NAME, f"cannot be read: {error.strerror}")
        return None


def _given(content: bytes, outcome: VerifiedExecution) -> _Given | None:
    """Read what the stored record states; None where that cannot be."""
    try:
        problem = version_problem(msgspec.json.decode(content, type=_Version).format_version, FORMAT_VERSION)
        if problem is None:
            return msgspec.json.decode(content, type=_Given)
        outcome.add(problem[0], FILE_NAME, problem[1])
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        outcome.add("schema", FILE_NAME, f"is no run record: {error}")
    return None


def _specification(given: _Given, outcome: VerifiedExecution) -> RunSpec | None:
    """Return the stored specification, held to the run's identity; None where it is none."""
    try:
        spec = run_spec_from_json(given.specification)
        run_id = spec.run_id
    except TuneoffError as error:
        outcome.add("schema", "specification", f"is no specification of a run: {error}")
        return None
    if run_id != given.run_id:
        outcome.add("plan", "run_id", f"stored {given.run_id}, its specification has {run_id}", given.run_id, run_id)
    if outcome.run_id != given.run_id:
        text = f"stored {given.run_id}, but it lies in the folder of {outcome.run_id}"
        outcome.add("plan", "run_id", text, given.run_id, outcome.run_id)
    return spec


def _derive(
    folder: Path, content: bytes, spec: RunSpec, given: _Given, expected: PlanExpectation, outcome: VerifiedExecution
) -> tuple[WatchedLog, Derived] | None:
    """Derive the record: by the events alone where they tell how the run ended, else with what its supervisor stated."""
    log = WatchedLog(folder / EVENTS)
    emulated = given.emulated if expected.emulated is None else expected.emulated

    def derived(ruling: Ruling | None = None) -> Derived:
        return derive_folder(
            folder, spec, emulated=emulated, ruling=ruling, versions=given.versions, environment=given.environment, log=log
        )

    stated = Ruling(status=given.status, reason=given.reason, charged=given.charged)  # type: ignore[arg-type]
    try:
        if given.reason not in IN_NO_EVENT:
            found = derived()
            record = found.record
            if given.status == "done" or Ruling(status=record.status, reason=record.reason, charged=record.charged) == stated:
                return log, found
        elif derived().record.status == "done":
            outcome.notes.append(
                "its events tell of a run that is done: its command ended before run.json was written, or it was changed"
            )
        found = derived(stated)
    except ResultsError as error:
        outcome.add("file", "", str(error).replace(f"{folder}/", ""))
        return None
    except Exception as error:  # altered files may break any rule of the derivation: that is a finding, not a fault
        outcome.add("value", "", f"the record cannot be derived from its files: {type(error).__name__}: {error}")
        _check_schema(content, outcome)
        return None
    outcome.stated.append(f"status: {given.status}, {given.reason} (charged: {given.charged or 'nobody'})")
    _check_verdict(log, given, outcome)
    return log, found


def _check_verdict(log: WatchedLog, given: _Given, outcome: VerifiedExecution) -> None:
    """A supervisor writes down why it ends a run, so its verdict must stand among the events."""
    known = IN_NO_EVENT.get(given.reason)
    if known is not None:
        if (given.status, given.charged) != (known.status, known.charged):
            ended = f"it is {given.status} by {given.charged}"
            text = f"a run of which {known.reason!r} holds is {known.status} by the {known.charged}, but {ended}"
            outcome.add("verdict", "status", text)
    elif not any((stop.cause, stop.charged) == (given.reason, given.charged) for stop in log.stops):
        outcome.add("verdict", "reason", f"stored {given.reason!r} (charged: {given.charged}), but no event says so")


def _compare(content: bytes, record: RunRecord, given: _Given, outcome: VerifiedExecution) -> None:
    """Name each value of the stored record that differs; where its text is the same nothing can.

    What an older tuneoff did not compute yet is told, and no defect.
    """
    if is_same_text(content, record):
        return
    version = given.tuneoff_version
    is_other = version not in (None, tuneoff.__version__)
    new = 0
    try:
        for difference in record_differences(content, record, skipped=("sealed", "run_id")):
            if is_other and difference.stored is msgspec.UNSET:
                new += 1
            else:
                outcome.add("value", difference.path, difference.text, difference.stored, difference.recomputed)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:  # in what the record states nothing of
        outcome.add("schema", FILE_NAME, f"is no run record: {error}")
    if is_other:
        besides = f", and {new} values are not in it" if new else ""
        outcome.notes.append(f"tuneoff {version} wrote it, this is {tuneoff.__version__}: formulas may have changed{besides}")
    _check_schema(content, outcome)


def _check_schema(content: bytes, outcome: VerifiedExecution) -> None:
    """Decode the stored record strictly, and name keys that it has twice."""
    try:
        _decoder.decode(content)
        for name in load_json(content)[1]:
            outcome.add("schema", FILE_NAME, f"{name!r} stands twice in one object: readers take one or the other")
    except ValueError as error:  # of msgspec too
        outcome.add("schema", FILE_NAME, str(error))


def _check_seals(folder: Path, given: _Given, record: RunRecord | None, outcome: VerifiedExecution) -> None:
    """Hold the raw files to their seals; `record`: whose seals are those of today, None where there is none."""
    try:
        broken = compare_seals(given.sealed, record.sealed) if record is not None else broken_seals(folder, given.sealed)
        for seal in broken:
            outcome.add("seal", seal.name, seal.problem)
    except ResultsError as error:
        outcome.add("file", "", str(error).replace(f"{folder}/", ""))


def _check_times(log: WatchedLog, derived: Derived, outcome: VerifiedExecution) -> None:
    record, gaps = derived.record, log.statistics.gaps
    for gap in gaps:
        what = "events are missing before" if gap.found > gap.expected else "events stand twice or in another order at"
        text = f"{what} line {gap.line}: expected seq {gap.expected}, found {gap.found}"
        outcome.add("file", f"{EVENTS}/{gap.file}", text)
    for life in log.lives:
        if life.process.execution_id != outcome.execution_id:
            outcome.add("file", life.file, f"it is of execution {life.process.execution_id}")
    samples = derived.evidence.samples
    if samples is not None and samples.header.execution_id != outcome.execution_id:
        outcome.add("file", SAMPLES, f"it is of execution {samples.header.execution_id}")
    if record.clock is not None:
        outcome.add_all("clock", clock_faults(log.lives, record, samples))
