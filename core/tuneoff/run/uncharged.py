"""What of energy, carbon and cost the runs will not have, foreseen before they begin."""

from __future__ import annotations

import contextlib

from tuneoff.errors import TuneoffError
from tuneoff.experiment.accounting.declared import of_run, series_window, wall_time
from tuneoff.experiment.plan import Plan
from tuneoff.experiment.power_settings import AUTO, NO_METER
from tuneoff.measure.cost import unpriced
from tuneoff.measure.power.select_meter import open_meter
from tuneoff.registry import adapter_class, power_meter_class


def uncharged_lines(plan: Plan, now_wall_ns: int) -> list[str]:
    """Return a line where a meter knows no idle power, one where a series does not cover the present, one per lacking price."""
    lines: list[str] = []
    meter, intensity = plan.power.meter, plan.accounting.intensity
    with contextlib.suppress(TuneoffError):  # a meter that cannot be opened is reported elsewhere
        if meter not in (AUTO, NO_METER) and power_meter_class(meter).is_inert:
            with contextlib.closing(open_meter(meter, plan.power.placed_options)) as opened:
                idle = opened.idle_watts or {}
                lacking = [domain for domain in opened.description.domains if domain not in idle]
            if lacking:  # without it nothing can be split
                unknown = f"{meter} has no idle power of {', '.join(lacking)}, so no run will have energy of trials or job"
                lines.append(f"power: {unknown}; add to the recording: `# idle {lacking[0]}: WATTS`")
    if intensity is not None and intensity.mean(now_wall_ns, now_wall_ns) is None:
        start, end = series_window(intensity)
        problem = f"the series covers {start} to {end}, but now it is {wall_time(now_wall_ns)}"
        way_out = "give a series that covers them, or {g_per_kwh: ...}"
        lines.append(f"carbon: {problem}: runs that begin now will have no CO2e; {way_out}")
    labels = plan.label_texts
    reasons: dict[str, dict[str, None]] = {}
    for run in plan.counted:
        if run.skip_reason is None:
            capabilities = adapter_class(run.spec.adapter).capabilities_on(run.spec.platform)
            accounting = of_run(plan.accounting, capabilities)
            reason = unpriced(run.spec.experiment.workers, accounting, capabilities.framework or run.spec.adapter)
            if reason:
                reasons.setdefault(reason, {})[labels[run.label]] = None
    return lines + [f"prices: {', '.join(those)} will have no cost: {reason}" for reason, those in reasons.items()]
