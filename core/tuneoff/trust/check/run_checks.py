"""Check adapters: make the runs, judge them, and try once more what failed at a time limit: the machine may have been busy."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

from tuneoff.base.findings import Finding, Report
from tuneoff.base.packages import installed_version
from tuneoff.measure.use import LARGEST_SHARE
from tuneoff.run.supervisor.guardian import temporary_folder, watching
from tuneoff.trust.check.checks import CHECKS
from tuneoff.trust.check.evidence import AdapterCheck, AdapterEvidence, FinishedRun, Subject
from tuneoff.trust.check.make import make_evidence

ONE_AT_A_TIME = 1  # runs of the second try
AGAIN = "again"  # the folder of runs that are made a second time
SHOWN = ("framework", "runs", "seconds")  # values of a report, on a page


def check_adapter(
    subject: Subject, checks: Sequence[AdapterCheck], keep: Path | None = None, tell: Callable[[str], None] = lambda text: None
) -> Report:
    """Make the runs that these checks read, and return what they say; what fails at a time limit is tried again, once.

    `keep`: an empty folder for the runs, else they are removed.
    """
    started = time.monotonic()
    with (
        watching() as announce,
        temporary_folder(announce, "tuneoff-check-") if keep is None else nullcontext(keep.absolute()) as folder,
    ):
        evidence = make_evidence(subject, checks, folder, tell, announce)

        def again(late: Sequence[AdapterCheck]) -> AdapterEvidence:
            tell(f"trying again: {', '.join(check.id for check in late)}")
            return make_evidence(subject, late, folder / AGAIN, tell, announce, ONE_AT_A_TIME)

        findings = tried_again(checks, evidence, again)
    seconds, runs, package = time.monotonic() - started, len(evidence.runs), subject.capabilities.package
    framework = (
        f"{subject.capabilities.framework} {installed_version(package) or 'of unknown version'}" if package else "no framework"
    )
    return Report(
        label=subject.label,
        findings=findings,
        check_count=len(CHECKS),
        about=f"{runs} runs, {seconds:.0f} s ({framework}{', emulated' if subject.is_emulated else ''})",
        values={
            "adapter": subject.name,
            "label": subject.label,
            "platform": subject.platform,
            "emulated": subject.is_emulated,
            "framework": framework,
            "runs": runs,
            "seconds": round(seconds, 1),
        },
    )


def tried_again(
    checks: Sequence[AdapterCheck], evidence: AdapterEvidence, make: Callable[[Sequence[AdapterCheck]], AdapterEvidence]
) -> list[Finding]:
    """Return what each check finds; one that fails at a time limit is judged once more, on runs that `make` has made again.

    The text says what was seen at both tries, and what the machine did meanwhile; also where another check failed over a run that
    timed out while other programs kept the machine busy.
    """
    findings = [check.finding(evidence) for check in checks]
    late = [
        check for check, finding in zip(checks, findings, strict=True) if check.has_time_limit and finding.verdict == "failed"
    ]
    second = make(late) if late else evidence
    for number, (check, first) in enumerate(zip(checks, findings, strict=True)):
        if check in late:
            again = check.finding(second)
            before = f"the first try, {_others(evidence.some(*check.reads))}: {first.text}"
            now = f"the second try, {_others(second.some(*check.reads))}"
            text = f"{again.text} ({now}; {before})"
            if again.is_good:
                text = f"{again.text + '; ' if again.text else ''}{now}, passed; {before}"
            findings[number] = replace(first, verdict="passed" if again.is_good else "failed", text=text)
        elif not first.is_good and not check.has_time_limit:
            timed_out = [run for run in evidence.some(*check.reads) if run.stored is not None and run.stored.status == "timeout"]
            if max((run.others_percent or 0.0 for run in timed_out), default=0.0) > LARGEST_SHARE:
                busy = f"a run timed out while the machine was busy ({_others(timed_out)}): free it, and check again"
                findings[number] = replace(first, text=f"{first.text}; {busy}")
    return findings


def _others(runs: Iterable[FinishedRun]) -> str:
    """Return what other programs used during that of some runs in which they used the most."""
    shares = [run.others_percent for run in runs if run.others_percent is not None]
    return f"other programs used {max(shares):.0f} % of the processors" if shares else "what the machine did is not known"
