"""Check adapters: make the runs, judge them, report."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tuneoff.errors import ResultsError
from tuneoff.run.supervisor.guardian import Announce, temporary_folder, watching
from tuneoff.trust.check.again import ONE_AT_A_TIME, told_of_others, tried_again
from tuneoff.trust.check.checks import CHECKS
from tuneoff.trust.check.conformance_report import Report, report_of
from tuneoff.trust.check.evidence import AdapterEvidence, Subject
from tuneoff.trust.check.make import make_evidence
from tuneoff.trust.check.model import Check, judge_all

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
