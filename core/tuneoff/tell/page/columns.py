"""The columns of the tables per framework, by their metrics: heading, unit and meaning are those of the catalogue."""

from __future__ import annotations

from tuneoff.experiment.metric_names import metric

QUALITY_AND_TIME = (
    *map(metric, ("quality.test", "quality.validation", "time.jct_without_test", "time.jct", "time.deploy", "time.setup")),
    *map(
        metric, ("time.trial", "time.result_collection", "time.test", "time.undeploy", "overhead.per_trial", "slots.idle_share")
    ),
)
ENERGY_AND_COST = (
    *map(metric, ("energy.trial", "energy.per_completed_trial", "energy.cpu_seconds", "energy.reserved_core_seconds")),
    *map(metric, ("carbon.job", "cost.job", "cost.per_completed_trial")),
    *map(metric, ("waste.default.time", "waste.default.energy", "waste.default.cost", "energy.idle_share")),
)
FOOTPRINT = (metric("time.preparation"), metric("memory.tree_peak_rss"))
ALL = (*QUALITY_AND_TIME, *ENERGY_AND_COST, *FOOTPRINT)
