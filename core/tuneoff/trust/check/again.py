"""What failed at a limit of time is tried once more: the machine may have been busy, which is no fault of the adapter."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from tuneoff.measure.disturbance import LARGEST_SHARE
from tuneoff.trust.check.evidence import AdapterEvidence
from tuneoff.trust.check.model import Check, CheckResult, Finding, judge_all, passed

ONE_AT_A_TIME = 1  # runs of the second try


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
