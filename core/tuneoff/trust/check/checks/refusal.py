"""Refusals: before anything starts, whatever is not offered."""

from __future__ import annotations

from collections.abc import Callable

from tuneoff.base.findings import Check, Finding, check, judged, not_tested
from tuneoff.trust.check.evidence import AdapterEvidence
from tuneoff.trust.check.planned_runs import REFUSALS


def _refuses(family: str) -> Callable[[AdapterEvidence], Finding]:
    def judge(evidence: AdapterEvidence) -> Finding:
        assert evidence.refusals is not None
        answers = [answer for answer in evidence.refusals.answers if answer.family == family]
        if not answers:
            return not_tested("nothing was asked")
        problems = []
        for answer in answers:
            if answer.outcome != "refused":
                problems.append(f"{answer.request} was {answer.outcome}{f': {answer.text}' if answer.text else ''}")
            elif len(answer.text.splitlines()) != 1:
                problems.append(f"{answer.request} was refused, but not in one line: {answer.text!r}")
        return judged(problems, f"{len(answers)} requests refused")

    return judge


@check(
    "refusal.undeclared",
    rule="samplers, pruners, platforms and retries that are not declared are refused",
    reason="a framework's limits must be reported, not replaced silently",
    way_out="list in the capabilities what is offered, and why the rest is not; accept all of it in refuse",
    reads=(REFUSALS,),
)
def _as_declared(evidence: AdapterEvidence) -> Finding:
    """Core refuses what is not declared before it asks the adapter; what is declared the adapter alone could refuse."""
    finding = _refuses("undeclared")(evidence)
    assert evidence.refusals is not None
    declared = [answer for answer in evidence.refusals.answers if answer.family == "declared"]
    if finding.verdict != "passed" or not declared:
        return finding
    refused = [answer for answer in declared if answer.outcome != "accepted"]
    return judged(
        (f"{answer.request} was {answer.outcome}: {answer.text}" for answer in refused), f"{finding.text}, {len(declared)} served"
    )


@check(
    "refusal.starts-nothing",
    rule="to plan and to refuse imports no framework and starts nothing",
    reason="plans are made on machines without frameworks, and must cost nothing",
    way_out="import the framework in deploy, not with the adapter's module nor in refuse",
    reads=(REFUSALS,),
)
def _starts_nothing(evidence: AdapterEvidence) -> Finding:
    assert evidence.refusals is not None
    problems = [f"a {leftover.kind} is left: {leftover.text}" for leftover in evidence.refusals.leftovers]
    if evidence.refusals.framework_imported:
        problems.append(f"the framework ({evidence.subject.capabilities.module}) was imported")
    return judged(problems)


OPTIONS = (
    Check(
        id="refusal.adapter-options",
        rule="an option that the adapter does not have is refused",
        reason="a misspelt option that is ignored makes another comparison",
        way_out="check every name, type and range of spec.options in refuse",
        reads=(REFUSALS,),
        judge=_refuses("adapter-options"),
    ),
    Check(
        id="refusal.sampler-options",
        rule="an option that the sampler does not have is refused",
        reason="a sampler that ignores its options is another sampler",
        way_out="call sampler_refusal in refuse, and declare the options in the offers",
        reads=(REFUSALS,),
        judge=_refuses("sampler-options"),
    ),
)
