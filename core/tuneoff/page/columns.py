"""The columns of the tables per framework: which metric, in which unit, and what it is."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Column:
    """A metric with its heading; `shown`: the unit of its figures, "" for the one that tables always use."""

    heading: str
    metric: str
    title: str
    shown: str = ""


QUALITY_AND_TIME = (
    Column("test", "quality.test", "the best model's score on the test split, scored once"),
    Column("validation", "quality.validation", "the best trial's validation value"),
    Column("JCT", "time.jct", "job completion time: from the start of deploy to the end of un-deploy"),
    Column("deploy", "time.deploy", "until the framework could take a job"),
    Column("setup", "time.setup", "until the first trial was submitted"),
    Column("trials", "time.trial", "from the first submission until the last trial ended"),
    Column("collect", "time.result_collection", "until the best configuration was known"),
    Column("test step", "time.test", "the test of the best model"),
    Column("un-deploy", "time.undeploy", "until all that deploy started was gone"),
    Column("overhead", "overhead.per_trial", "per trial: slot time that no trial used while trials were to come", "ms"),
    Column("idle", "slots.idle_share", "share of the slots' time in which nothing was to run on them"),
)
ENERGY_AND_COST = (
    Column("TWH", "energy.trial", "mean energy of a trial's own work"),
    Column("job/trial", "energy.per_completed_trial", "energy of the whole job per completed trial"),
    Column("CPU", "energy.cpu_seconds", "CPU seconds of the job"),
    Column("cores", "energy.reserved_core_seconds", "reserved core seconds of the job"),
    Column("CO2e", "carbon.job", "greenhouse gases of the job, as CO2"),
    Column("OC", "cost.job", "cost of the job"),
    Column("OC/trial", "cost.per_completed_trial", "cost of the job per completed trial"),
    Column("WTT", "waste.default.time", "time of wasted trials, default policy"),
    Column("WTE", "waste.default.energy", "their energy"),
    Column("WTC", "waste.default.cost", "their cost"),
    Column("WR", "energy.idle_share", "share of the slots' energy in which nothing ran on them"),
)
FOOTPRINT = (
    Column("first trial", "time.preparation", "time to the first trial: deploy and setup"),
    Column("peak memory", "memory.tree_peak_rss", "greatest sum over all processes of the run"),
)
ALL = (*QUALITY_AND_TIME, *ENERGY_AND_COST, *FOOTPRINT)
