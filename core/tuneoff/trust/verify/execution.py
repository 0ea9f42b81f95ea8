"""Verify one execution: hold its raw files to their seals and rules, derive its record anew, and compare the stored one."""

from __future__ import annotations

import io
import json
from pathlib import Path

import msgspec
from msgspec.structs import replace

from tuneoff.base.files import odd_entries, read_json, read_regular, sha256_of
from tuneoff.base.layout import BEST_CONFIGURATION, END, EVENTS, FRAMEWORK, RECORD, SAMPLES, TEST_RESULT
from tuneoff.errors import ResultsError
from tuneoff.experiment.plan import OBSOLETE
from tuneoff.measure.derived import Derived, derive_folder
from tuneoff.record.end import ExecutionEnd, broken_seals, key_of, read_end, read_spec
from tuneoff.record.endings import IN_NO_EVENT
from tuneoff.record.events.reader import EventLog
from tuneoff.record.run_record import FORMAT_VERSION, RunRecord
from tuneoff.record.store import cached_run, encode
from tuneoff.run.trial.checkpoint import checkpoint_path
from tuneoff.trust.history_check.rules import check_history
from tuneoff.trust.verify.consistency import WatchedLog, clock_faults, wrong_sums
from tuneoff.trust.verify.findings import TOO_DEEP, VerifiedExecution, count_values, read_object
from tuneoff.trust.verify.planned import VerificationTask, check_planned

STATED = ("versions", "environment")


def verify_execution(task: VerificationTask) -> VerifiedExecution:
    """Recompute the record of an execution's folder and return all that is not as it must be."""
    folder = task.folder
    outcome = VerifiedExecution(where=task.where, run_id=folder.parent.name, execution_id=folder.name)
    try:
        for path, kind in odd_entries(folder, besides=FRAMEWORK):
            outcome.has_special_files = True
            outcome.add("file", path.relative_to(folder).as_posix(), f"is {kind}, and must be a file")
        if not outcome.has_special_files:
            _verify(task, outcome)
    except RecursionError:
        outcome.add("schema", "", f"a file {TOO_DEEP}")
    outcome.close()
    return outcome


def _verify(task: VerificationTask, outcome: VerifiedExecution) -> None:
    """Hold an execution's files to their seals, rules and plan, and its stored record to the one that follows from them."""
    folder = task.folder
    try:
        content = read_regular(folder / END)
    except OSError as error:
        outcome.add("file", END, f"cannot be read: {error.strerror}")
        return
    value = read_object(content, FORMAT_VERSION, outcome, END)
    if value is None:
        return
    try:
        end = read_end(folder, content)
        if value != json.loads(msgspec.json.encode(end)):
            outcome.add("schema", END, "is not as tuneoff writes it: keys are missing or unknown")
    except ResultsError as error:
        outcome.add("schema", END, str(error).replace(f"{folder / END} ", ""))
        return
    outcome.status = end.ruling.status if end.ruling is not None else "done"
    derivation = None
    try:
        for seal in broken_seals(folder, end.sealed):
            outcome.add("seal", seal.name, seal.problem)
        derivation = _derive(task, end, outcome)
    except ResultsError as error:
        outcome.add("file", "", str(error).replace(f"{folder}/", ""))
    except Exception as error:  # altered files may break any rule of the derivation: that is a finding, not a fault
        outcome.add("value", "", f"the record cannot be derived from its files: {type(error).__name__}: {error}")
    if derivation is None:
        return
    log, derived = derivation
    record, samples = derived.record, derived.evidence.samples
    outcome.status = record.status
    outcome.trials, outcome.events, outcome.values = len(record.trials), record.events, count_values(record)
    if samples is not None:
        outcome.samples = samples.power_samples + len(samples.usage)
    _compare(folder, key_of(content), record, outcome)
    for gap in log.statistics.gaps:
        what = "events are missing before" if gap.actual > gap.expected else "events stand twice or in another order at"
        text = f"{what} line {gap.line}: expected seq {gap.expected}, found {gap.actual}"
        outcome.add("file", f"{EVENTS}/{gap.file}", text)
    for life in log.lives:
        if life.process.execution_id != outcome.execution_id:
            outcome.add("file", life.file, f"it is of execution {life.process.execution_id}")
    if samples is not None and samples.header.execution_id != outcome.execution_id:
        outcome.add("file", SAMPLES, f"it is of execution {samples.header.execution_id}")
    if record.clock is not None:
        outcome.add_all("clock", clock_faults(log.lives, record, samples))
    _test_files(folder, record, outcome)
    for broken in check_history(EventLog(folder / EVENTS), record.run_spec(), is_done=record.status == "done"):
        outcome.add("history", broken.rule, broken.line, shown_by=broken)
    check_planned(derived, end, task, outcome)
    outcome.add_all("sum", wrong_sums(record.metrics, derived.account))


def _derive(task: VerificationTask, end: ExecutionEnd, outcome: VerifiedExecution) -> tuple[WatchedLog, Derived]:
    """Derive the record. A ruling that the events alone do not come to must stand among them: its supervisor wrote it down."""
    folder = task.folder
    spec, log = read_spec(folder), WatchedLog(folder / EVENTS)
    if outcome.run_id != spec.run_id:
        text = f"its specification has {spec.run_id}, but it lies in the folder of {outcome.run_id}"
        outcome.add("plan", "run_id", text, outcome.run_id, spec.run_id)
    derived = derive_folder(folder, spec, end, log)
    if end.ruling is None:
        return log, derived
    record, by_events = derived.record, derive_folder(folder, spec, replace(end, ruling=None)).record
    stated = IN_NO_EVENT.get(end.ruling.reason)
    if stated is not None and by_events.status == "done":
        text = f"its events tell of a run that is done: its command ended before {END} was written, or it was changed"
        outcome.notes.append(text)
    if (record.status, record.reason, record.charged) == (by_events.status, by_events.reason, by_events.charged):
        return log, derived
    outcome.stated.append(f"status: {record.status}, {record.reason} (charged: {record.charged or 'no one'})")
    if stated is not None and stated != end.ruling:
        ended = f"it is {end.ruling.status} by {end.ruling.charged}"
        text = f"a run of which {stated.reason!r} holds is {stated.status} by the {stated.charged}, but {ended}"
        outcome.add("verdict", "status", text)
    elif stated is None and (end.ruling.reason, end.ruling.charged) not in {(stop.cause, stop.charged) for stop in log.stops}:
        text = f"stated {end.ruling.reason!r} (charged: {end.ruling.charged}), but no event says so"
        outcome.add("verdict", "reason", text)
    return log, derived


def _compare(folder: Path, key: str, record: RunRecord, outcome: VerifiedExecution) -> None:
    """Name each value of the stored record that differs; one that no reader takes is told, and no defect."""
    try:
        content = read_regular(folder / RECORD)
    except OSError:
        return
    file = io.BytesIO(content)
    if all(file.read(len(piece)) == piece for piece in encode(record, key)) and not file.read(1):
        return  # the same text, byte by byte
    if cached_run(content, key) is None:
        outcome.notes.append(f"{RECORD} is damaged, or of other files or another tuneoff: it is not used")
        return
    try:
        stored, recomputed = (msgspec.json.decode(text) for text in (content, b"".join(encode(record, key))))
        outcome.compare("value", {key: stored[key] for key in stored if key not in OBSOLETE}, recomputed)
    except UnicodeDecodeError as error:  # in what no reader takes
        outcome.add("schema", RECORD, f"is damaged: {error}")


def _test_files(folder: Path, record: RunRecord, outcome: VerifiedExecution) -> None:
    """Hold what the test was given, the scores that its process wrote, and the checkpoint that it scored, to the events.

    Where there is no file of the first two, nothing.
    """
    test = record.test
    if test is None:
        return
    best = next((trial for trial in record.trials if trial.trial == test.trial), None)
    scored = {
        "trial": test.trial,
        "scores": dict(test.scores),
        "checkpoint_sha256": test.checkpoint_sha256,
        "device": test.device,
    }
    dues = {BEST_CONFIGURATION: dict(best.configuration), TEST_RESULT: scored} if best is not None else {}
    for name, due in dues.items():
        try:
            stored = read_json(folder / name)
        except FileNotFoundError:
            continue
        except (OSError, ValueError) as error:
            outcome.add("file", name, f"cannot be read: {error}")
            continue
        if name == TEST_RESULT and isinstance(stored, dict):  # it has details beside these
            stored = {key: stored[key] for key in due if key in stored}
        outcome.compare("file", stored, due, what=name, text="{0} is {1}, the events say {2}")

    if test.checkpoint_sha256 is None:
        return
    path = checkpoint_path(folder, test.trial)
    name = path.relative_to(folder).as_posix()
    try:
        digest = sha256_of(path)
        if digest != test.checkpoint_sha256:
            outcome.add("file", name, f"its SHA-256 is {digest[:12]}, but the test scored {test.checkpoint_sha256[:12]}")
    except FileNotFoundError:
        outcome.add("file", name, "is missing: the test scored it")
    except OSError as error:
        outcome.add("file", name, f"cannot be read: {error.strerror}")
