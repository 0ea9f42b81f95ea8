"""The metrics that tables show, the most important first. JSON has the figures of all of them, and of `FURTHER`."""

from __future__ import annotations

from tuneoff.experiment.metric_catalogue import FURTHER
from tuneoff.measure.spans import PARTS

COLUMNS = (  # of the table of figures
    *("quality.test", "time.jct_without_test", "overhead.per_trial"),
    *("energy.per_completed_trial_without_test", "cost.job_without_test"),
    *("quality.validation", "time.jct", "energy.per_completed_trial", "cost.job"),
    *("slots.idle_share", "energy.trial", "carbon.job_without_test", "carbon.job", "energy.idle_share"),
    *(f"waste.default.{name}" for name in ("time", "energy", "cost")),
    *("energy.cpu_seconds", "energy.reserved_core_seconds"),
    *(f"time.{part}" for part in PARTS if part != "metric_collection"),
    *("cost.per_completed_trial_without_test", "cost.per_completed_trial"),
)
QUALITY_AND_TIME = tuple(name for name in COLUMNS if name.startswith(("quality.", "time.", "overhead.", "slots.")))
ENERGY_AND_COST = tuple(name for name in COLUMNS if name not in QUALITY_AND_TIME)
ADDED = tuple(
    f"overhead.{name}" for name in ("per_trial", "process_start", "between", "dispatch", "report", "exit", "vacant")
)  # to a trial, and where from
FOOTPRINT = ("time.preparation", "memory.tree_peak_rss", "suite.cpu_share")
METRICS = tuple(dict.fromkeys((*COLUMNS, *ADDED, *FOOTPRINT, *FURTHER)))
