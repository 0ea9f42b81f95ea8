"""Checks: a rule with its evidence, what it finds, and the report of all findings on one subject, as text or JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import ModuleType
from typing import Any, Generic, Literal, Protocol, TypeVar

from tuneoff.base.commands import command
from tuneoff.base.json_values import values
from tuneoff.base.output import columns, one_line
from tuneoff.base.targets import unknown_name
from tuneoff.errors import NOT_KNOWN, ExperimentError

Verdict = Literal["passed", "warning", "failed", "not tested", "not applicable"]
ORDER: tuple[Verdict, ...] = ("passed", "failed", "not tested", "not applicable")  # of a contract's checks, which never warn
CONFORMS, FAILS = 0, 1  # exit codes


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What a check says of its subject; `text` is one line: what was seen, or why there was nothing to see.

    `warning`: worth knowing, but it keeps nothing from running. `not applicable`: the subject declares that it does not offer
    what the check is about. `not tested`: it offers it, but the runs did not get so far; that is not a pass. Where the reason is
    that the subject leaves out what the check needs (`is_out_of_reach`), it does not count against it; the last line names it.
    """

    verdict: Verdict
    text: str = ""
    id: str = ""  # of the check
    reason: str = ""  # of the check
    way_out: str = ""  # of the check
    is_out_of_reach: bool = False
    exit_code: int = 0  # of a command that ends over it, where its kind has one
    values: Mapping[str, Any] = field(default_factory=dict)  # what it was judged by, for programs

    @property
    def is_good(self) -> bool:
        """Whether a subject with this finding may conform."""
        return self.verdict in ("passed", "not applicable") or self.is_out_of_reach


def passed(text: str = "") -> Finding:
    """Return a pass; `text`: what was measured, where that tells something."""
    return Finding(verdict="passed", text=text)


def failed(text: str) -> Finding:
    """Return a failure: what was seen, with its values."""
    return Finding(verdict="failed", text=text)


def not_applicable(reason: str) -> Finding:
    """Return that there is nothing to check, and why."""
    return Finding(verdict="not applicable", text=reason)


def not_tested(reason: str) -> Finding:
    """Return that it could not be checked, and why."""
    return Finding(verdict="not tested", text=reason)


def out_of_reach(reason: str) -> Finding:
    """Return that it cannot be checked with what the subject or the machine offers, and why."""
    return Finding(verdict="not tested", text=reason, is_out_of_reach=True)


def judged(problems: Iterable[str], text: str = "", most: int = 3) -> Finding:
    """Return a failure that names the first problems, or a pass where there is none."""
    listed = list(problems)
    if not listed:
        return passed(text)
    more = f"; and {len(listed) - most} more" if len(listed) > most else ""
    return failed("; ".join(listed[:most]) + more)


class CheckEvidence(Protocol):
    """What checks read; `missing` says of a name that they read why it is not there."""

    @property
    def missing(self) -> Mapping[str, Finding]: ...


E = TypeVar("E", bound=CheckEvidence)


@dataclass(frozen=True, slots=True, kw_only=True)
class Check(Generic[E]):
    """One rule of a contract.

    `judge` is a pure function of the evidence: it starts nothing, and the same evidence gives the same finding.
    """

    id: str  # family.rule, e.g. "budget.trials"
    rule: str = ""  # one line: what has to hold
    reason: str  # one line: why a comparison needs it
    way_out: str  # one line: what the author of the subject can do
    reads: tuple[str, ...]  # names of runs, or of other evidence
    judge: Callable[[E], Finding] = field(repr=False)
    has_time_limit: bool = False  # a busy machine alone may make it fail: then it is tried again
    needs_all: bool = True  # False: it judges those of the runs that the subject can make

    def finding(self, evidence: E) -> Finding:
        """Return what the check says; evidence that is missing is reported, never passed over."""
        return replace(self._judged(evidence), id=self.id, reason=self.reason, way_out=self.way_out)

    def _judged(self, evidence: E) -> Finding:
        gone = [evidence.missing[name] for name in self.reads if name in evidence.missing]
        broken = [finding for finding in gone if not finding.is_good]
        if broken:
            return broken[0]
        if gone and (self.needs_all or len(gone) == len(self.reads)):
            return gone[0]
        try:
            return self.judge(evidence)
        except Exception as error:  # a record that no check foresaw: what it breaks is reported, and is not a pass
            return not_tested(one_line(f"the runs cannot be judged: {type(error).__name__}: {error}"))


def check(id: str, **about: Any) -> Callable[[Callable[[E], Finding]], Check[E]]:
    """Make a check of the function below, its `judge`; `about`: the other fields of a `Check`."""
    return lambda judge: Check(id=id, judge=judge, **about)


def checks_of(module: ModuleType) -> tuple[Check[Any], ...]:
    """Return the checks that a module defines, in their order."""
    return tuple(value for value in vars(module).values() if isinstance(value, Check))


def chosen(checks: Sequence[Check[E]], only: Sequence[str] = (), listed: Sequence[str] = ()) -> tuple[Check[E], ...]:
    """Return the checks of these ids or families (`best` stands for all of `best.*`), in their order; all if none is named.

    Raises:
        ExperimentError: there is no check of that name; `listed`: options of the command that tells which there are.
    """
    names = {name for check in checks for name in (check.id, check.id.partition(".")[0])}
    for name in only:
        if name not in names:
            raise ExperimentError(f"{unknown_name('check', name, names)}; see: {command('check', '--list', *listed)}")
    return tuple(check for check in checks if not only or check.id in only or check.id.partition(".")[0] in only)


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """All findings on one subject.

    `failure`: why nothing could be checked, where the subject is to blame. `about`: the runs and versions, for the last line.
    `values`: the same and more by name, for programs.
    """

    label: str
    findings: Sequence[Finding]
    check_count: int  # how many checks there are, where perhaps not all were asked for
    failure: str = ""
    about: str = ""
    values: Mapping[str, Any] = field(default_factory=dict)

    @property
    def is_complete(self) -> bool:
        """Whether all checks were asked for."""
        return len(self.findings) >= self.check_count

    @property
    def exit_code(self) -> int:
        """Whether the subject keeps what was asked for; what could not be tested, alone or all that was asked, tells nothing."""
        if self.failure or self.counts["failed"]:
            return FAILS
        is_open = not all(finding.is_good for finding in self.findings)
        return NOT_KNOWN if is_open or 0 < len(self.findings) == self.counts["not tested"] else CONFORMS

    @property
    def counts(self) -> dict[Verdict, int]:
        """How many checks came to each verdict."""
        count = Counter(finding.verdict for finding in self.findings)
        return {verdict: count[verdict] for verdict in ORDER}

    def rows(self) -> Iterator[tuple[str, str, str]]:
        """Yield a row per check that did not pass, failures with their ways out first; then those that passed.

        Of these a row per check that measured something, and one per family of the others.
        """
        families: dict[str, list[str]] = {}
        for finding in sorted(self.findings, key=lambda finding: (*ORDER[1:], "passed").index(finding.verdict)):
            if finding.verdict == "passed" and not finding.text:
                family, _, rule = finding.id.partition(".")
                families.setdefault(family, []).append(rule)
                continue
            text = f"{finding.text}; {finding.way_out}" if finding.verdict == "failed" else finding.text
            yield finding.id, finding.verdict if finding.is_good else finding.verdict.upper(), one_line(text)
        yield from ((family, f"{len(rules)} passed", ", ".join(rules)) for family, rules in families.items())

    def answer(self) -> str:
        """Return the last line: whether the subject conforms, and by how many checks; some that passed do not tell that."""
        if self.failure:
            return f"{self.label}: {'DOES NOT CONFORM' if self.is_complete else 'NOT TESTED'}: {one_line(self.failure)}"
        counts = ", ".join(f"{count} {verdict}" for verdict, count in self.counts.items() if count)
        untested = ", ".join(finding.id for finding in self.findings if finding.verdict == "not tested")
        word = "DOES NOT CONFORM"
        if self.exit_code == NOT_KNOWN:
            word = f"NOT KNOWN, nothing failed, but not all was tested (not: {untested})"
        elif self.exit_code == CONFORMS:
            word = (
                "CONFORMS"
                if self.is_complete
                else f"PASSED: {len(self.findings)} of the {self.check_count} checks were asked for"
            )
            word += f", as far as was tested (not: {untested})" if untested else ""
        return f"{self.label}: {word}: {counts}{self.about and f'; {self.about}'}"

    def text(self) -> str:
        """Return the table and the last line; the line alone, where nothing could be checked."""
        table = "" if self.failure else f"{columns(('check', 'verdict', 'what was seen, or the way out'), [*self.rows()])}\n"
        return f"{table}{self.answer()}"

    def to_json(self) -> dict[str, Any]:
        """Return everything as JSON values."""
        return {
            **self.values,
            "conforms": {CONFORMS: True, FAILS: False}.get(self.exit_code),  # null: not known
            "is_complete": self.is_complete,
            "exit_code": self.exit_code,
            "counts": self.counts,
            "checks": [values(finding, ("id", "verdict", "text", "reason", "way_out")) for finding in self.findings],
        }
