"""Make the evidence of planted adapters, and tell in which checks they fail."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from trust.check.planted.expected import Control
from trust.check.planted.leaving import NAME, SHARED_MEMORY
from tuneoff.trust.check import planned_runs
from tuneoff.trust.check.checks import CHECKS
from tuneoff.trust.check.evidence import AdapterCheck, AdapterEvidence
from tuneoff.trust.check.make import make_evidence, subject_of

ALL_RUNS = "ALL_RUNS"  # environment variable: each control makes the runs of all checks
TESTS = Path(__file__).parents[2]


def make_some(control: Control, folder: Path) -> AdapterEvidence:
    """Make the runs in which the control's own check sees its defect; with `ALL_RUNS` in the environment, those of all checks."""
    (own,) = [check for check in CHECKS if check.id == control.check]
    assert set(control.runs) <= set(own.reads)
    checks = CHECKS if ALL_RUNS in os.environ else [replace(own, reads=control.runs)]
    folder.mkdir(parents=True, exist_ok=True)
    evidence = make_evidence(subject_of(control.target), checks, folder)
    for made in evidence.runs.values():  # its own alone: other tests of planted adapters may run beside
        (SHARED_MEMORY / f"{NAME}-{made.folder.name}").unlink(missing_ok=True)
    return evidence


def failures(checks: Iterable[AdapterCheck], evidence: AdapterEvidence) -> dict[str, str]:
    """Return what the checks that fail say, by their ids; what the runs that were made do not tell is not a failure."""
    findings = [check.finding(evidence) for check in checks]
    return {finding.id: finding.text for finding in findings if finding.verdict == "failed"}


@contextmanager
def planted_surroundings(folder: Path) -> Iterator[None]:
    """Let runs import what is planted, and give it a home folder."""
    folder.mkdir(parents=True, exist_ok=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(folder))
        patch.setenv("PYTHONPATH", str(TESTS), prepend=os.pathsep)
        patch.setattr(planned_runs, "EARLY_ENDS_SECONDS", 20.0)  # one of them waits for as long
        yield
