"""What a check is, what it reads, and what it says."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeVar

from tuneoff.base.commands import command
from tuneoff.base.targets import unknown_name
from tuneoff.errors import ExperimentError

if TYPE_CHECKING:
    from tuneoff.trust.check.evidence import AdapterEvidence, Made

CheckVerdict = Literal["passed", "failed", "not applicable", "not tested"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What a check says of one adapter; `text` is one line: what was seen, or why there was nothing to see.

    `not applicable`: the adapter declares that it does not offer what the check is about. `not tested`: it offers it, but the
    runs did not come so far; that is no pass. Where the reason is that the adapter leaves out what the check needs
    (`is_out_of_reach`), it does not count against the adapter, and the last line names it.
    """

    verdict: CheckVerdict
    text: str = ""
    is_out_of_reach: bool = False

    @property
    def is_good(self) -> bool:
        """Whether an adapter with this finding may conform."""
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
    """Return that it cannot be checked with what the adapter offers, and why."""
    return Finding(verdict="not tested", text=reason, is_out_of_reach=True)


def judged(problems: Iterable[str], text: str = "", most: int = 3) -> Finding:
    """Return a failure that names the first problems, or a pass where there is none."""
    found = list(problems)
    if not found:
        return passed(text)
    more = f"; and {len(found) - most} more" if len(found) > most else ""
    return failed("; ".join(found[:most]) + more)


Judge = Callable[["AdapterEvidence"], Finding]


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One rule of the contract of adapters.

    `judge` is a pure function of what was made: it starts nothing, and the same evidence gives the same finding.
    """

    id: str  # family.rule, e.g. "budget.trials"
    rule: str  # one line: what has to hold
    reason: str  # one line: why a comparison needs it
    way_out: str  # one line: what the author of an adapter can do
    reads: tuple[str, ...]  # names of runs, or of other evidence (see tuneoff.trust.check.planned_runs)
    judge: Judge = field(repr=False)
    has_time_limit: bool = False  # a busy machine alone may make it fail: then it is tried again
    needs_all: bool = True  # False: it judges those of the runs that an adapter can make

    def finding(self, evidence: AdapterEvidence) -> Finding:
        """Return what the check says; evidence that is missing is told, never passed over."""
        gone = [evidence.missing[name] for name in self.reads if name in evidence.missing]
        broken = [finding for finding in gone if not finding.is_good]
        if broken:
            return broken[0]
        if gone and (self.needs_all or len(gone) == len(self.reads)):
            return gone[0]
        try:
            return self.judge(evidence)
        except Exception as error:  # a record that no check foresaw: what it breaks is told, and is no pass
            return not_tested(" ".join(f"the runs cannot be judged: {type(error).__name__}: {error}".split()))


def check(id: str, **about: Any) -> Callable[[Judge], Check]:
    """Make a check of the function below, its `judge`; `about`: the other fields of a `Check`."""
    return lambda judge: Check(id=id, judge=judge, **about)


def run_check(id: str, *, reads: tuple[str, ...], **about: Any) -> Callable[[Callable[[Made], Iterable[str]]], Check]:
    """Make a check of the function below, which yields the problems of one run: it judges those of `reads` that were made."""

    def made_of(problems: Callable[[Made], Iterable[str]]) -> Check:
        def judge(evidence: AdapterEvidence) -> Finding:
            return judged(problem for made in evidence.some(*reads) for problem in problems(made))

        return Check(id=id, judge=judge, reads=reads, **about)

    return made_of


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckResult:
    """One check with its finding."""

    check: Check
    finding: Finding


class Named(Protocol):
    """A check of an adapter, or of a workload."""

    @property
    def id(self) -> str: ...

    @property
    def reason(self) -> str: ...

    @property
    def way_out(self) -> str: ...


AnyCheck = TypeVar("AnyCheck", bound=Named)


def chosen(checks: Sequence[AnyCheck], only: Sequence[str] = (), listed: Sequence[str] = ()) -> tuple[AnyCheck, ...]:
    """Return the checks of these ids or families (`best` stands for all of `best.*`), in their order; all if none is named.

    Raises:
        ExperimentError: there is no check of that name; `listed`: options of the command that tells which there are.
    """
    known = {name for check in checks for name in (check.id, check.id.partition(".")[0])}
    for name in only:
        if name not in known:
            raise ExperimentError(f"{unknown_name('check', name, known)}; see: {command('check', '--list', *listed)}")
    return tuple(check for check in checks if not only or check.id in only or check.id.partition(".")[0] in only)


def judge_all(checks: Sequence[Check], evidence: AdapterEvidence) -> tuple[CheckResult, ...]:
    """Return what all checks say of the same evidence."""
    return tuple(CheckResult(check=check, finding=check.finding(evidence)) for check in checks)
