"""What decides the comparison, its margin too, frozen before the first run; a report marks anything else as exploratory."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any

import msgspec

from tuneoff.base.identity import canonical_json, digest
from tuneoff.experiment.accounting.declared import frozen
from tuneoff.experiment.expand import Cell, Entry
from tuneoff.experiment.spec import WorkloadSpec
from tuneoff.experiment.variants import TASK
from tuneoff.workload import new_workload, workload_at

if TYPE_CHECKING:
    from tuneoff.experiment.load import MatrixFile

log = logging.getLogger(__name__)

KEY = "quality_margin"  # of `analysis`, in the file and in matrix.json
WORKLOADS = "workload_margins"  # of `analysis` in matrix.json, where the file sets none: by `_identity`
FORMAT = 2
TESTED, VALIDATED = "quality.test", "quality.validation"
TIE_RULE = "best trial: validation value, then validation loss, then canonical configuration hash"
RETRY_RULE = "a repeat for reasons of the machine repeats the whole block of a seed, decided blind to results; all are kept"
FAILURE_RULE = "a run that failed or timed out is worse than any that is done; two of them are no difference"
MISSING_RULE = "a run without the metric is counted in the denominator and named; it is never replaced or imputed"
KIND_RULE = "measured and estimated energies are never ranked together: a pair of different kinds is no comparison"
_OF_ENERGY = (".energy", ".carbon")  # and all `energy.` and `carbon.`; rent is declared, a tariff is of energy
_NAMED = ("power", "carbon", "prices", "kind_rule", WORKLOADS)  # keys that a message names


@dataclass(frozen=True, slots=True, kw_only=True)
class Margin:
    """A margin in units of `quality.test`, and where it is from; None with the reason."""

    value: float | None
    source: str


def workload_margins(workloads: Iterable[WorkloadSpec]) -> dict[str, float]:
    """Ask the workloads of a plan that is being made for their own margins; return those that have one, for `analysis`."""
    by_identity = {_identity(workload): workload for workload in workloads}
    margins = {identity: _ask(workload) for identity, workload in by_identity.items()}
    return {identity: margin for identity, margin in margins.items() if margin is not None}


def quality_margin(analysis: Mapping[str, Any], workload: WorkloadSpec) -> Margin:
    """Return the margin of a matrix for one workload, as its plan froze it."""
    value = _usable(analysis.get(KEY))
    if value is not None:
        return Margin(value=value, source=f"analysis.{KEY} of the file, frozen in the plan")
    workloads = analysis.get(WORKLOADS)
    value = _usable(workloads.get(_identity(workload))) if isinstance(workloads, Mapping) else None
    if value is not None:
        return Margin(value=value, source=f"of workload {workload.name!r} with these options")
    return Margin(value=None, source=f"workload {workload.name!r} has no margin of its own in the plan; set analysis.{KEY}")


def _ask(workload: WorkloadSpec) -> float | None:
    try:
        return _usable(new_workload(workload.target, workload.options).quality_margin())
    except Exception as error:  # a plugin's own code may fail in any way, and this is only its default
        log.warning("workload %r cannot be asked for its margin: %s: %s", workload.name, type(error).__name__, error)
        return None


def _usable(margin: Any) -> float | None:
    is_number = isinstance(margin, int | float) and not isinstance(margin, bool)
    return float(margin) if is_number and 0 < margin <= sys.float_info.max else None


def _identity(workload: WorkloadSpec) -> str:
    return digest([workload.target, workload.name, dict(workload.options)])


def difference(frozen: Mapping[str, Any], requested: Mapping[str, Any]) -> str | None:
    """Return which key of a file makes two frozen analyses differ, None where none does."""
    keys = [key for key in {**frozen, **requested} if canonical_json([frozen.get(key)]) != canonical_json([requested.get(key)])]
    if any(key not in _NAMED for key in keys):
        return "analysis"
    return next((key for key in _NAMED if key in keys), None)


def freeze(file: MatrixFile, entries: Sequence[Entry], cells: Sequence[Cell]) -> dict[str, Any]:
    """Return the analysis plan as JSON values; `cells` are those that will have a result.

    Compared is every pair of different adapters in every variant where both will have a result. A pair of equal entries (A/A)
    is no comparison: its difference is the noise floor. Of each question the family is what the
    file says, so that another adapter changes no verdict between the others.
    """
    present = {(cell.variant, cell.entry.label) for cell in cells}
    stated: dict[str, Any] = {}  # only what says something of this plan, so that digests of others stay
    metrics = (file.analysis.primary_metric, *file.analysis.questions.values())
    if any(metric.startswith(("energy.", "carbon.", "cost.")) or metric.endswith(_OF_ENERGY) for metric in metrics):
        stated["kind_rule"] = KIND_RULE
    if file.analysis.quality_margin is not None:
        stated[KEY] = file.analysis.quality_margin
    elif margins := workload_margins(cell.spec.experiment.workload for cell in cells):
        stated[WORKLOADS] = margins
    if file.analysis.weights is not None:
        stated["weights"] = file.analysis.weights
    anchors = {
        str(variant.values.get(TASK, "")): msgspec.structs.asdict(variant.file.anchors)
        for variant in file.variants
        if variant.file.anchors is not None
    }
    if anchors:
        stated["anchors"] = anchors
    has_test = all(workload_at(target).has_test for target in {cell.spec.experiment.workload.target for cell in cells})
    changed = {} if has_test else {TESTED: VALIDATED}  # where a workload offers no test, quality is judged on validation
    if any(cell.spec.experiment.objective.stop for cell in cells):  # a job that ends at a goal runs as many trials as that takes
        changed |= {f"{what}.per_completed_trial_without_test": f"{what}.job_without_test" for what in ("energy", "cost")}
    firsts = [entry.label for entry in entries if entry.replicate == 0]
    comparisons = [
        {"variant": dict(variant.values), "adapters": [first, second]}
        for index, variant in enumerate(file.variants)
        for first, second in combinations(firsts, 2)
        if (index, first) in present and (index, second) in present
    ]
    return {
        "format": FORMAT,
        "primary_metric": file.analysis.primary_metric,
        "margin_percent": file.analysis.margin_percent,
        "confidence": file.analysis.confidence,
        "power": file.power.to_json(),
        **frozen(file.accounting),
        "pairing": "by seed",
        "correction": "bonferroni",
        "questions": {name: changed.get(metric, metric) for name, metric in file.analysis.questions.items()},
        "family_size": file.analysis.family_size,
        "failure_rule": FAILURE_RULE,
        "seeds": list(file.seeds),
        "comparisons": comparisons,
        "noise_floor": [entry.label for entry in entries if entry.replicate > 0],
        "excluded": "warm-up runs",
        "trial_retries": sorted({cell.spec.experiment.failures.retries for cell in cells}),
        "retry_rule": RETRY_RULE,
        "tie_rule": TIE_RULE,
        "missing_rule": MISSING_RULE,
        **stated,
    }
