"""Table 1: each declared variable of a run beside what was found, and whether they agree."""

from __future__ import annotations

from dataclasses import replace

from tuneoff.measure.declared_experiment import experiment_variables
from tuneoff.measure.declared_resources import resource_variables
from tuneoff.measure.evidence import NO_EVIDENCE, Evidence
from tuneoff.record.run_record import DeclaredVariable, FlagRecord, RunRecord


def declared_variables(run: RunRecord, evidence: Evidence = NO_EVIDENCE) -> tuple[DeclaredVariable, ...]:
    """Return wn, at, wcpu, wmem, amem, t, ts, m, ta, sa, pa, tg, Φ and pS, from the record and its samples alone."""
    return (*resource_variables(run, evidence), *experiment_variables(run))


def with_declared(run: RunRecord, evidence: Evidence = NO_EVIDENCE) -> RunRecord:
    """Return the same record with its declared variables, and the flag `declared_mismatch` where one of them differs."""
    variables = declared_variables(run, evidence)
    differing = [variable for variable in variables if variable.agrees is False]
    if not differing:
        return replace(run, declared=variables)
    text = "; ".join(f"{one.symbol}: {one.how}" for one in differing)
    flag = FlagRecord(name="declared_mismatch", text=text, count=len(differing))
    return replace(run, declared=variables, flags=(*run.flags, flag))
