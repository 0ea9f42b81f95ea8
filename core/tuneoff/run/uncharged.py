"""What of energy, carbon and cost the runs will not have, foreseen before they begin."""

from __future__ import annotations

from tuneoff.errors import TuneoffError
from tuneoff.experiment.accounting.declared import not_covered_line, of_run
from tuneoff.experiment.plan import Plan
from tuneoff.experiment.power_settings import AUTO, NO_METER, PowerSettings
from tuneoff.measure.cost import unpriced
from tuneoff.measure.power.select_meter import open_meter
from tuneoff.registry import adapter_class, power_meter_class


def uncharged_lines(plan: Plan, now_wall_ns: int) -> list[str]:
    """Return a line where a meter knows no idle power, one where a series does not cover the present, one per lacking price."""
    lacking = (unsplit_line(plan.power), not_covered_line(plan.accounting, now_wall_ns))
    labels = plan.label_texts
    reasons: dict[str, dict[str, None]] = {}
    for run in plan.counted:
        if run.skip_reason is None:
            capabilities = adapter_class(run.spec.adapter).capabilities_on(run.spec.platform)
            accounting = of_run(plan.accounting, capabilities)
            reason = unpriced(run.spec.experiment.workers, accounting, capabilities.framework or run.spec.adapter)
            if reason:
                reasons.setdefault(reason, {})[labels[run.label]] = None
    unknown = [f"prices: {', '.join(those)} will have no cost: {reason}" for reason, those in reasons.items()]
    return [*filter(None, lacking), *unknown]


def unsplit_line(settings: PowerSettings) -> str | None:
    """Return a line where the meter says beforehand that it does not know the idle power, without which nothing can be split."""
    if settings.meter in (AUTO, NO_METER):
        return None
    try:
        if not power_meter_class(settings.meter).is_inert:
            return None
        meter = open_meter(settings.meter, settings.placed_options)
    except TuneoffError:  # said elsewhere
        return None
    idle = meter.idle_watts or {}
    lacking = [domain for domain in meter.description.domains if domain not in idle]
    meter.close()
    if not lacking:
        return None
    unknown = f"{settings.meter} has no idle power of {', '.join(lacking)}, so no run will have energy of trials or job"
    return f"power: {unknown}; say it in the recording: `# idle {lacking[0]}: WATTS`"
