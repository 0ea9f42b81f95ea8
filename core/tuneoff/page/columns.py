"""The columns of the tables per framework: which metric, in which unit, and what it is."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Column:
    """A metric with its heading; `unit`: the metric's own, "" where it is the objective's."""

    heading: str
    metric: str
    unit: str
    title: str


QUALITY_AND_TIME = (
    Column("test", "quality.test", "", "the best model's score on the test split, scored once"),
    Column("validation", "quality.validation", "", "the best trial's validation value"),
    Column("JCT", "time.jct", "ms", "job completion time: from the start of deploy to the end of un-deploy"),
    Column("deploy", "time.deploy", "ms", "until the framework could take a job"),
    Column("setup", "time.setup", "ms", "until the first trial was submitted"),
    Column("trials", "time.trial", "ms", "from the first submission until the last trial ended"),
    Column("collect", "time.result_collection", "ms", "until the best configuration was known"),
    Column("test step", "time.test", "ms", "the test of the best model"),
    Column("un-deploy", "time.undeploy", "ms", "until all that deploy started was gone"),
    Column("overhead", "overhead.per_trial", "ms", "per trial: slot time that no trial used while trials waited"),
    Column("idle", "slots.idle_share", "%", "share of the slots' time in which nothing was to run on them"),
)
ENERGY_AND_COST = (
    Column("TWH", "energy.trial", "kWh", "mean energy of a trial's own work"),
    Column("job/trial", "energy.per_completed_trial", "J", "energy of the whole job per completed trial"),
    Column("CPU", "energy.cpu_seconds", "s", "CPU seconds of the job"),
    Column("cores", "energy.reserved_core_seconds", "s", "reserved core seconds of the job"),
    Column("CO2e", "carbon.job", "g", "greenhouse gases of the job, as CO2"),
    Column("OC", "cost.job", "USD", "cost of the job"),
    Column("OC/trial", "cost.per_completed_trial", "USD", "cost of the job per completed trial"),
    Column("WTT", "waste.default.time", "ms", "time of wasted trials, default policy"),
    Column("WTE", "waste.default.energy", "kWh", "their energy"),
    Column("WTC", "waste.default.cost", "USD", "their cost"),
    Column("WR", "energy.idle_share", "%", "share of the slots' energy in which nothing ran on them"),
)
FOOTPRINT = (
    Column("first trial", "time.preparation", "ms", "time to the first trial: deploy and setup"),
    Column("peak memory", "memory.tree_peak_rss", "MB", "greatest sum over all processes of the run"),
)
ALL = (*QUALITY_AND_TIME, *ENERGY_AND_COST, *FOOTPRINT)
