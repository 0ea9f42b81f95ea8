"""Check adapters: make the runs, judge them, try once more what failed at a limit of time, for the machine may have been busy."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from tuneoff.errors import ResultsError
from tuneoff.measure.disturbance import LARGEST_SHARE
from tuneoff.run.supervisor.guardian import Announce, temporary_folder, watching
from tuneoff.trust.check.checks import CHECKS
from tuneoff.trust.check.conformance_report import Report, report_of
from tuneoff.trust.check.evidence import AdapterEvidence, Subject
from tuneoff.trust.check.make import make_evidence
from tuneoff.trust.check.model import Check, CheckResult, Finding, judge_all, passed

ONE_AT_A_TIME = 1  # runs of the second try
AGAIN = "again"  # the folder of runs that are made a second time


def check_adapter(
    subject: Subject, checks: Sequence[Check], keep: Path | None = None, tell: Callable[[str], None] = lambda text: None
) -> Report:
    """Make the runs that these checks read, and return what they say; what fails at a limit of time is tried again, once.

    `keep`: a folder for the runs, else they are removed.

    Raises:
        ResultsError: the folder has files already, or cannot be made.
    """
    started = time.monotonic()
    with watching() as announce, _folder(keep, announce) as folder:
        evidence = make_evidence(subject, checks, folder, tell, announce)

        def again(late: Sequence[Check]) -> AdapterEvidence:
            tell(f"{subject.label}: trying again: {', '.join(check.id for check in late)}")
            return make_evidence(subject, late, folder / AGAIN, tell, announce, ONE_AT_A_TIME)

        results = told_of_others(tried_again(judge_all(checks, evidence), evidence, again), evidence)
    return report_of(evidence, results, time.monotonic() - started, len(CHECKS))


@contextmanager
def _folder(keep: Path | None, announce: Announce) -> Iterator[Path]:
    if keep is None:
        with temporary_folder(announce, "tuneoff-check-") as folder:
            yield folder
    else:
        make_empty(keep)
        yield keep.absolute()


def make_empty(keep: Path) -> None:
    """Make a folder for runs that are kept.

    Raises:
        ResultsError: it has files already, or cannot be made.
    """
    try:
        keep.mkdir(parents=True, exist_ok=True)
        if any(keep.iterdir()):
            raise ResultsError(f"{keep} must be a new or empty folder, but has files; choose another --keep")
    except OSError as error:
        raise ResultsError(f"{keep} cannot be made: {error.strerror}; choose another --keep") from error


def tried_again(
    results: Sequence[CheckResult], evidence: AdapterEvidence, make: Callable[[Sequence[Check]], AdapterEvidence]
) -> tuple[CheckResult, ...]:
    """Return the results, those that failed at a limit of time judged on runs that `make` has made again.

    The text says what was seen at both tries, and what the machine did meanwhile.
    """
    late = [result for result in results if result.check.has_time_limit and result.finding.verdict == "failed"]
    if not late:
        return tuple(results)
    second = make([result.check for result in late])
    findings = {result.check.id: result for result in judge_all([result.check for result in late], second)}
    return tuple(
        replace(result, finding=_of_both(result, findings[result.check.id].finding, evidence, second))
        if result.check.id in findings
        else result
        for result in results
    )


def told_of_others(results: Sequence[CheckResult], evidence: AdapterEvidence) -> tuple[CheckResult, ...]:
    """Return the results; what failed over a run that timed out says so where other programs kept the machine busy meanwhile."""
    return tuple(
        replace(result, finding=replace(result.finding, text=f"{result.finding.text}; {busy}"))
        if not result.finding.is_good and not result.check.has_time_limit and (busy := _busy(result.check, evidence))
        else result
        for result in results
    )


def _busy(check: Check, evidence: AdapterEvidence) -> str:
    late = [made.machine for made in evidence.some(*check.reads) if made.stored is not None and made.stored.status == "timeout"]
    busy = [machine for machine in late if machine is not None and machine.others_percent > LARGEST_SHARE]
    return f"a run timed out while the machine was busy ({busy[0].text}): free it, and check again" if busy else ""


def _of_both(first: CheckResult, again: Finding, evidence: AdapterEvidence, second: AdapterEvidence) -> Finding:
    before = f"the first try, {_meanwhile(first.check, evidence)}: {first.finding.text}"
    now = f"the second try, {_meanwhile(first.check, second)}"
    if again.is_good:
        return passed(f"{again.text + '; ' if again.text else ''}{now}, passed; {before}")
    return replace(first.finding, text=f"{again.text} ({now}; {before})")


def _meanwhile(check: Check, evidence: AdapterEvidence) -> str:
    """Return what the machine did during that of the check's runs in which others used the most."""
    machines = [made.machine for made in evidence.some(*check.reads) if made.machine is not None]
    if not machines:
        return "what the machine did is not known"
    return max(machines, key=lambda machine: machine.others_percent).text
