"""A metric as the catalogue has it.

Here are its rows on what a run uses up: energy, carbon, cost, memory, processors.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

STEPS = {  # the parts of the job completion time, in order: where each begins and ends
    "deploy": "the call of `deploy` to its return",
    "setup": "the end of deploy to the first submission of a trial",
    "trial": "the first submission to the end of the last trial, in whatever state",
    "result_collection": "the end of the last trial to the moment when the best is known",
    "test": "best known to the return of the test step",
    "metric_collection": "the end of the test to the return of the metrics step",
    "undeploy": "the end of metric collection to the (last) return of un-deploy",
}
Better = Literal["lower", "higher", "objective"]  # objective: as the objective's metric is
Scale = Literal["difference", "ratio"]  # one − other in the metric's unit, or ln(one / other)


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """What is known of a metric before any run.

    `unit`: "" for a score, whose unit is its own name. `is_counted`: a count or a score, so that it is compared between machines
    too.
    """

    name: str
    title: str
    unit: str
    better: Better = "lower"
    scale: Scale = "ratio"
    is_counted: bool = False
    is_signed: bool = False  # it may be below 0
    heading: str = ""  # in tables
    shown: str = ""  # the unit in tables, where it is not the usual one


def family(
    prefix: str,
    unit: str,
    *rows: tuple[str, str] | tuple[str, str, str],
    better: Better = "lower",
    scale: Scale = "ratio",
    is_counted: bool = False,
    is_signed: bool = False,
    shown: str = "",
) -> Iterator[Metric]:
    """Yield metrics that share all but name, title and heading."""
    for name, title, *heading in rows:
        yield Metric(
            name=f"{prefix}{name}",
            title=title,
            unit=unit,
            better=better,
            scale=scale,
            is_counted=is_counted,
            is_signed=is_signed,
            heading="".join(heading),
            shown=shown,
        )


_STEP = f"in its part NAME: {', '.join(STEPS)}"
RESOURCES = (
    *family("energy.", "kWh", ("trial", "TWH: mean energy of the busy segments of a used trial", "TWH")),
    *family(
        "energy.",
        "J",
        ("job", "all slots from start of deploy to end of un-deploy, coordinator, services, test"),
        ("job_low", "the job with the lower bounds of the model's weights"),
        ("job_high", "the job with the upper bounds of the model's weights"),
        ("job_without_test", "the job, less all that it used in the part test: tuneoff's own, the same for every framework"),
        ("per_completed_trial", "the job over its completed trials", "job/trial"),
        (
            "per_completed_trial_without_test",
            "job_without_test over its completed trials: the framework's price, the primary energy of a comparison",
            "job/trial w/o test",
        ),
        ("per_trained_epoch", "the job over its trained epochs"),
        ("step.NAME", f"the job {_STEP}"),
        ("idle", "slots that are idle within the slot window (end of deploy to best known)"),
        ("node", "the host (or hosts) as a whole, over the run, as the meter counts it"),
    ),
    *family("energy.", "%", ("idle_share", "WR: idle / (busy + overhead + idle), in the slot window", "WR"), scale="difference"),
    *family(
        "energy.",
        "s",
        ("cpu_seconds", "CPU time of the job", "CPU"),
        ("cpu_seconds_without_test", "the same, less what was used in the part test"),
    ),
    *family("energy.", "s", ("reserved_core_seconds", "workers.cpus by the time of all slots", "cores"), shown="core-s"),
    *family(
        "energy.",
        "ratio",
        (
            "weight_ratio_low",
            "low end of the model's plausible W per core / J per CPU second; its source names the servers",
        ),
        ("weight_ratio_high", "high end of that"),
    ),
    *family(
        "carbon.",
        "g/kWh",
        ("trial_intensity", "CINT: mean over the trials of their intensity, weighted by power over time"),
        ("job_intensity", "JCINT: the same over the job"),
    ),
    *family(
        "carbon.",
        "g",
        ("job", "CO2e of the job: power by intensity over time", "CO2e"),
        ("job_without_test", "the same, less what was caused in the part test", "CO2e w/o test"),
        ("step.NAME", f"CO2e of the job {_STEP}"),
    ),
    *family(
        "cost.",
        "USD",
        (
            "job",
            "OC: price per hour by billed hours of slots, head node and database; own premises: the job's energy by the tariff",
            "OC",
        ),
        ("job_without_test", "the same of the job without its part test, by the hours billed then", "OC w/o test"),
        ("per_completed_trial", "cost.job over the completed trials", "OC/trial"),
        ("per_completed_trial_without_test", "cost.job_without_test over the completed trials", "OC/trial w/o test"),
        ("step.NAME", f"price by time of the job {_STEP}; without rounding"),
    ),
    *family(
        "memory.",
        "MB",
        ("peak_rss", "highest peak of a trial's process alone, by its own reading"),
        ("peak_pss", "the same with shared pages divided among their users, as samples saw it: the true peak may be higher"),
        (
            "trial_tree_peak_rss",
            "highest of a trial's process and all that it started, if two samples saw it; shared pages count in each",
        ),
        ("trial_tree_peak_pss", "the same with shared pages divided, where each process of 50 MB or more was looked at"),
        ("tree_peak_rss", "highest sum over all processes of the run, shared pages counted in each", "peak memory"),
        ("driver_peak_rss", "highest of the process that drives the framework, as samples saw it"),
    ),
    *family(
        "host.",
        "%",
        ("other_cpu_share", "CPU time of other programs in the trial step (job if under 1 s), of the run's processors"),
        scale="difference",
    ),
    *family("suite.", "%", ("sampler_cpu_share", "CPU time of the sampling thread, of one core"), scale="difference"),
    *family("suite.", "s", ("cpu_seconds", "CPU time of tuneoff's supervising process during the run")),
    *family("suite.", "%", ("cpu_share", "CPU time of that process over the job's", "tuneoff's CPU"), scale="difference"),
)
