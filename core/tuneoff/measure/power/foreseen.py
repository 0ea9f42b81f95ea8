"""What of energy a meter cannot tell, as far as that is known before the first run."""

from __future__ import annotations

from tuneoff.errors import TuneoffError
from tuneoff.experiment.power_settings import AUTO, NO_METER, PowerSettings
from tuneoff.measure.power.select_meter import open_meter
from tuneoff.registry import power_meter_class


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
    domains = [domain.rpartition("/")[2] for domain in meter.description.domains]
    has_slots = any(domain.startswith("slot-") for domain in domains)
    idle = meter.idle_watts or {}
    lacking = [domain for domain in meter.description.domains if domain not in idle]
    meter.close()
    if not lacking or has_slots:
        return None
    unknown = f"{settings.meter} has no idle power of {', '.join(lacking)}, so no run will have energy of trials or job"
    return f"power: {unknown}; say it in the recording: `# idle {lacking[0]}: WATTS`"
