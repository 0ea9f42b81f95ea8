"""What `tuneoff faults --json` found, read back, and whether an adapter survived what it must."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from tuneoff.base.files import read_regular
from tuneoff.base.format import counted
from tuneoff.errors import ResultsError, UnknownNameError
from tuneoff.judge.faults import FAULTS, NO_FAULT, Class
from tuneoff.judge.recommend.eligibility import No, Obstacle
from tuneoff.judge.recommend.request import ADAPTER, DEFAULTS, Request

SURVIVED = (Class.RECOVERED.value, Class.LOST.value)  # an answer that holds for the trials that were completed
NO_SUCH_PART = "the framework has no such part"
_BY = {ADAPTER: "through its adapter", DEFAULTS: "by its own defaults"}
_LABEL = re.compile(r"(?P<adapter>[^@{#]+)(@(?P<platform>[^{#]+?)( \(emulated\))?)?(\{.*)?(#\d+)?")


class FaultResult(msgspec.Struct, frozen=True, kw_only=True):
    """One run of the fault matrix; `outcome` is None where it was not run, and `reason` says why."""

    adapter: str  # its label: "katib@emulated"
    setting: str
    fault: str
    outcome: str | None
    reason: str


class _File(msgspec.Struct):
    runs: list[FaultResult]


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultEvidence:
    """A result, and the file that it is from."""

    result: FaultResult
    file: Path


def read_faults(paths: Sequence[Path]) -> list[FaultEvidence]:
    """Read files that `tuneoff faults --json` wrote, or all `*.json` of a folder.

    Raises:
        ResultsError: there is none, or it is none.
    """
    return [FaultEvidence(result=result, file=file) for file in _files(paths) for result in _read(file)]


def check_names(names: Iterable[str]) -> None:
    """Refuse a fault that does not exist.

    Raises:
        UnknownNameError: there is none of that name.
    """
    known = [fault.name for fault in FAULTS if fault is not NO_FAULT]
    for name in names:
        if name not in known:
            raise UnknownNameError(f"no fault named {name!r}; known: {', '.join(known)}")


def obstacles(
    adapter: str, emulated_platforms: Sequence[str], evidence: Sequence[FaultEvidence], request: Request
) -> list[Obstacle]:
    """Return what the faults that an adapter must survive say against it. What was only seen on a stand-in is not known."""
    own = _of_adapter(adapter, emulated_platforms, evidence, request)
    decisive = [one for one in own if one.result.setting == request.faults_by]
    found = [obstacle for fault in request.must_survive for obstacle in _survival(fault, decisive, request.faults_by)]
    if request.never_silently_wrong:
        found += _wrong(decisive, request.faults_by)
    return found


def notes(adapter: str, emulated_platforms: Sequence[str], evidence: Sequence[FaultEvidence], request: Request) -> list[str]:
    """Return what the other settings came to under the faults that must be survived: it decides nothing here."""
    other = DEFAULTS if request.faults_by == ADAPTER else ADAPTER
    own = _of_adapter(adapter, emulated_platforms, evidence, request)
    found = []
    if request.never_silently_wrong:
        tried = [one for one in own if _was_tried(one, request.faults_by)]
        found.append(f"{counted(len(tried), 'fault')} {_BY[request.faults_by]} were tried: silently wrong in none")
    for one in own:
        result = one.result
        is_bad = result.outcome is not None and (
            (result.fault in request.must_survive and result.outcome not in SURVIVED)
            or (request.never_silently_wrong and result.outcome == Class.WRONG.value)
        )
        if is_bad and result.setting == other:
            found.append(f"{_BY[other]}, {result.fault}: {result.outcome} ({one.file})")
    return found


def _survival(fault: str, evidence: Sequence[FaultEvidence], by: str) -> Iterator[Obstacle]:
    of_fault = [one for one in evidence if one.result.fault == fault]
    bad = [one for one in of_fault if one.result.outcome is not None and one.result.outcome not in SURVIVED]
    if bad:
        one = bad[0]
        yield Obstacle(kind=No.FAULTS, text=f"{fault} {_BY[by]}: {one.result.outcome}, {one.result.reason} ({one.file})")
    elif not any(one.result.outcome is not None or one.result.reason == NO_SUCH_PART for one in of_fault):
        reason = f": {of_fault[0].result.reason}" if of_fault else ""
        yield Obstacle(kind=No.UNKNOWN, text=f"{fault} {_BY[by]}: no result{reason}")


def _wrong(evidence: Sequence[FaultEvidence], by: str) -> list[Obstacle]:
    tried = [one for one in evidence if _was_tried(one, by)]
    wrong = [one for one in tried if one.result.outcome == Class.WRONG.value]
    if not tried:
        return [Obstacle(kind=No.UNKNOWN, text=f"faults {_BY[by]}: no result")]
    return [
        Obstacle(kind=No.FAULTS, text=f"{one.result.fault} {_BY[by]}: silently wrong, {one.result.reason} ({one.file})")
        for one in wrong
    ]


def _was_tried(one: FaultEvidence, by: str) -> bool:
    return one.result.setting == by and one.result.outcome is not None and one.result.fault != NO_FAULT.name


def _of_adapter(
    adapter: str, emulated_platforms: Sequence[str], evidence: Sequence[FaultEvidence], request: Request
) -> list[FaultEvidence]:
    return [one for one in evidence if _is_of(one.result.adapter, adapter, emulated_platforms, request.platform)]


def _is_of(label: str, adapter: str, emulated_platforms: Sequence[str], platform: str | None) -> bool:
    """Tell whether a label is of the adapter, on a real platform, on the asked one where it names one."""
    if label == adapter:  # "module:Class" too
        return True
    found = _LABEL.fullmatch(label)
    if found is None or found["adapter"] != adapter:
        return False
    where = found["platform"]
    return where is None or (where not in emulated_platforms and "emulated" not in where and platform in (None, where))


def _files(paths: Sequence[Path]) -> Iterator[Path]:
    for path in paths:
        files = sorted(path.glob("*.json")) if path.is_dir() else [path]
        if not files:
            raise ResultsError(f"{path} holds no *.json; write one: tuneoff faults --json > faults.json")
        yield from files


def _read(path: Path) -> list[FaultResult]:
    try:
        return msgspec.json.decode(read_regular(path, follow=True), type=_File).runs
    except OSError as error:
        raise ResultsError(f"{path} cannot be read: {error.strerror}; name what `tuneoff faults --json` wrote") from error
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise ResultsError(f"{path} is not what `tuneoff faults --json` writes: {error}; write it again") from error
