"""Check adapters: make the runs, judge them, try once more what failed at a limit of time, for the machine may have been busy.

What they said is for people, for programs, and for a page of documentation.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tuneoff.base.output import markdown_table, one_line
from tuneoff.base.packages import installed_version
from tuneoff.errors import ResultsError
from tuneoff.measure.use import LARGEST_SHARE
from tuneoff.run.supervisor.guardian import temporary_folder, watching
from tuneoff.trust.check.checks import CHECKS
from tuneoff.trust.check.evidence import AdapterEvidence, Made, Subject
from tuneoff.trust.check.make import make_evidence
from tuneoff.trust.check.model import Check, CheckResult, CheckVerdict, Finding, judge_all, passed

ONE_AT_A_TIME = 1  # runs of the second try
AGAIN = "again"  # the folder of runs that are made a second time
CONFORMS, FAILS, NOT_KNOWN = 0, 1, 7  # exit codes
ORDER: tuple[CheckVerdict, ...] = ("passed", "failed", "not tested", "not applicable")


def check_adapter(
    subject: Subject, checks: Sequence[Check], keep: Path | None = None, tell: Callable[[str], None] = lambda text: None
) -> Report:
    """Make the runs that these checks read, and return what they say; what fails at a limit of time is tried again, once.

    `keep`: a new folder for the runs (see `make_empty`), else they are removed.
    """
    started = time.monotonic()
    with (
        watching() as announce,
        temporary_folder(announce, "tuneoff-check-") if keep is None else nullcontext(keep.absolute()) as folder,
    ):
        evidence = make_evidence(subject, checks, folder, tell, announce)

        def again(late: Sequence[Check]) -> AdapterEvidence:
            tell(f"trying again: {', '.join(check.id for check in late)}")
            return make_evidence(subject, late, folder / AGAIN, tell, announce, ONE_AT_A_TIME)

        results = told_of_others(tried_again(judge_all(checks, evidence), evidence, again), evidence)
    seconds = time.monotonic() - started
    return Report(subject=subject, results=results, runs=len(evidence.runs), seconds=seconds, known_checks=len(CHECKS))


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
    late = [made for made in evidence.some(*check.reads) if made.stored is not None and made.stored.status == "timeout"]
    busy = max((made.others_percent or 0.0 for made in late), default=0.0) > LARGEST_SHARE
    return f"a run timed out while the machine was busy ({_others(late)}): free it, and check again" if busy else ""


def _of_both(first: CheckResult, again: Finding, evidence: AdapterEvidence, second: AdapterEvidence) -> Finding:
    before = f"the first try, {_others(evidence.some(*first.check.reads))}: {first.finding.text}"
    now = f"the second try, {_others(second.some(*first.check.reads))}"
    if again.is_good:
        return passed(f"{again.text + '; ' if again.text else ''}{now}, passed; {before}")
    return replace(first.finding, text=f"{again.text} ({now}; {before})")


def _others(runs: Iterable[Made]) -> str:
    """Return what other programs used during that of some runs in which they used the most."""
    shares = [made.others_percent for made in runs if made.others_percent is not None]
    return f"other programs used {max(shares):.0f} % of the processors" if shares else "what the machine did is not known"


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """All results of one adapter, how many runs they read, and how long it took."""

    subject: Subject
    results: Sequence[CheckResult]
    runs: int
    seconds: float
    known_checks: int | None = None  # how many there are, where perhaps not all were asked for; None: the results are of all

    @property
    def is_complete(self) -> bool:
        """Whether all checks were asked for."""
        return self.known_checks is None or len(self.results) >= self.known_checks

    @property
    def exit_code(self) -> int:
        """Whether the adapter keeps what was asked for; what could not be tested, alone or all that was asked, tells nothing."""
        findings = [result.finding for result in self.results]
        if any(finding.verdict == "failed" for finding in findings):
            return FAILS
        none_seen = all(finding.verdict == "not tested" for finding in findings)
        is_open = not all(finding.is_good for finding in findings) or (bool(findings) and none_seen)
        return NOT_KNOWN if is_open else CONFORMS

    @property
    def counts(self) -> dict[CheckVerdict, int]:
        """How many checks came to each verdict."""
        found = Counter(result.finding.verdict for result in self.results)
        return {verdict: found[verdict] for verdict in ORDER}

    @property
    def versions(self) -> str:
        """The framework with its version, or "no framework"."""
        capabilities = self.subject.capabilities
        if not capabilities.package:
            return "no framework"
        return f"{capabilities.framework} {installed_version(capabilities.package) or 'of unknown version'}"


HEADER = ("check", "verdict", "what was seen, or the way out")


def rows(report: Report) -> Iterator[tuple[str, str, str]]:
    """Yield a row per check that did not pass, failures with their ways out first; then a row per family of those that did."""
    families: dict[str, list[str]] = {}
    others = [result for result in report.results if result.finding.verdict != "passed"]
    for result in sorted(others, key=lambda one: ORDER.index(one.finding.verdict)):
        finding = result.finding
        text = f"{finding.text}; {result.check.way_out}" if finding.verdict == "failed" else finding.text
        yield result.check.id, finding.verdict if finding.is_good else finding.verdict.upper(), text
    for result in report.results:
        if result.finding.verdict == "passed":
            family, _, rule = result.check.id.partition(".")
            families.setdefault(family, []).append(rule)
    yield from ((family, f"{len(rules)} passed", ", ".join(rules)) for family, rules in families.items())


def answer(report: Report) -> str:
    """Return the last line: whether the adapter conforms, and by how many checks; that some passed is not that it conforms."""
    counts = ", ".join(f"{count} {verdict}" for verdict, count in report.counts.items() if count)
    if report.exit_code == FAILS:
        word = "DOES NOT CONFORM"
    elif report.exit_code == NOT_KNOWN:
        lacking = ", ".join(result.check.id for result in report.results if result.finding.verdict == "not tested")
        word = f"NOT KNOWN, nothing failed, but not all was tested (not: {lacking})"
    elif report.is_complete:
        untested = ", ".join(result.check.id for result in report.results if result.finding.is_out_of_reach)
        word = f"CONFORMS{untested and f', as far as was tested (not: {untested})'}"
    else:
        word = f"PASSED: {len(report.results)} of the {report.known_checks} checks were asked for"
    emulated = ", emulated" if report.subject.is_emulated else ""
    return f"{report.subject.label}: {word}: {counts}; {report.runs} runs, {report.seconds:.0f} s ({report.versions}{emulated})"


def to_json(report: Report) -> dict[str, Any]:
    """Return everything as JSON values."""
    subject = report.subject
    return {
        "adapter": subject.name,
        "label": subject.label,
        "platform": subject.platform,
        "emulated": subject.is_emulated,
        "framework": report.versions,
        "conforms": {CONFORMS: True, FAILS: False}.get(report.exit_code),  # null: not known
        "is_complete": report.is_complete,
        "exit_code": report.exit_code,
        "runs": report.runs,
        "seconds": round(report.seconds, 1),
        "counts": report.counts,
        "checks": [
            {
                "id": result.check.id,
                "verdict": result.finding.verdict,
                "text": result.finding.text,
                "reason": result.check.reason,
                "way_out": result.check.way_out,
            }
            for result in report.results
        ],
    }


_SIGNS = {"passed": "yes", "failed": "**NO**", "not tested": "**not tested**", "not applicable": "–"}


def markdown(reports: Sequence[Report]) -> Iterator[str]:
    """Yield the lines of a page's part: a table of all adapters, then what was seen where that tells something."""
    yield from _summary(reports)
    yield ""
    labels = [report.subject.label for report in reports]
    by_check = list(zip(*(report.results for report in reports), strict=True))
    yield from markdown_table(
        ("check", "why", *labels),
        [
            (f"`{first.check.id}`", first.check.reason, *(_SIGNS[one.finding.verdict] for one in (first, *others)))
            for first, *others in by_check
        ],
    )
    for report in reports:
        told = [result for result in report.results if result.finding.text]
        if told:
            yield from ("", f"**{report.subject.label}**", "")
            for result in told:
                yield f"- `{result.check.id}`: {result.finding.verdict}: {one_line(result.finding.text)}"


def _summary(reports: Sequence[Report]) -> Iterator[str]:
    rows = []
    for report in reports:
        good = "yes" if report.is_complete else f"{len(report.results)} of {report.known_checks} asked for"
        word = {CONFORMS: good, FAILS: "**NO**"}.get(report.exit_code, "**not known**")
        counts = map(str, report.counts.values())
        rows.append((report.subject.label, report.versions, word, *counts, str(report.runs), f"{report.seconds:.0f}"))
    yield from markdown_table(("adapter", "framework", "conforms", *ORDER, "runs", "seconds"), rows)
