"""What of energy, carbon and cost the runs of a plan will not have, as far as that is known before the first of them."""

from __future__ import annotations

from tuneoff.experiment.accounting.charge import of_run
from tuneoff.experiment.accounting.text import not_covered_line
from tuneoff.experiment.names import label_texts
from tuneoff.experiment.plan import Plan
from tuneoff.measure.power.foreseen import unsplit_line
from tuneoff.measure.rent import unpriced
from tuneoff.registry import adapter_class


def uncharged_lines(plan: Plan, now_wall_ns: int) -> list[str]:
    """Return a line where a meter knows no idle power, one where a series does not cover the present, one per lacking price."""
    lacking = (unsplit_line(plan.power), not_covered_line(plan.accounting, now_wall_ns))
    labels = label_texts((run.label, run.spec.adapter) for run in plan.runs)
    reasons: dict[str, dict[str, None]] = {}
    for run in plan.counted:
        if run.skip_reason is None:
            capabilities = adapter_class(run.spec.adapter).capabilities
            accounting = of_run(plan.accounting, capabilities)
            reason = unpriced(run.spec.experiment.workers, accounting, capabilities.framework or run.spec.adapter)
            if reason:
                reasons.setdefault(reason, {})[labels[run.label]] = None
    unknown = [f"prices: {', '.join(those)} will have no cost: {reason}" for reason, those in reasons.items()]
    return [*filter(None, lacking), *unknown]
