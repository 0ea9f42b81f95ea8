"""What the checks said, for people, for programs, and for a page of documentation."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from tuneoff.base.output import markdown_table, one_line
from tuneoff.base.packages import installed_version
from tuneoff.trust.check.evidence import AdapterEvidence, Subject
from tuneoff.trust.check.model import CheckResult, CheckVerdict

CONFORMS, FAILS = 0, 1
ORDER: tuple[CheckVerdict, ...] = ("passed", "failed", "not tested", "not applicable")


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
        return CONFORMS if all(result.finding.is_good for result in self.results) else FAILS

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


def report_of(
    evidence: AdapterEvidence, results: Sequence[CheckResult], seconds: float, known_checks: int | None = None
) -> Report:
    return Report(
        subject=evidence.subject,
        results=tuple(results),
        runs=len(evidence.runs),
        seconds=seconds,
        known_checks=known_checks,
    )


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
    if report.exit_code != CONFORMS:
        word = "DOES NOT CONFORM"
    elif report.is_complete:
        word = "CONFORMS"
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
        "conforms": report.exit_code == CONFORMS,
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
        word = good if report.exit_code == CONFORMS else "**NO**"
        counts = map(str, report.counts.values())
        rows.append((report.subject.label, report.versions, word, *counts, str(report.runs), f"{report.seconds:.0f}"))
    yield from markdown_table(("adapter", "framework", "conforms", *ORDER, "runs", "seconds"), rows)
