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


def _steps(prefix: str, unit: str, title: str) -> Iterator[Metric]:
    return family(f"{prefix}.step.", unit, *((name, title.format(name)) for name in STEPS))


RESOURCES = (
    *family("energy.", "kWh", ("trial", "TWH: mean energy of the busy segments of a used trial", "TWH")),
    *family("energy.", "W", ("trial_power", "mean over the used trials of energy / busy time")),
    *family("energy.", "J", ("trials", "the busy segments of all trials")),
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
        ("overhead", "of the slots: overhead"),
        ("idle", "of the slots: idle within the slot window (end of deploy to best known)"),
        ("outside", "of the slots: neither busy nor overhead, outside of the slot window"),
        ("coordinator", "of the process that calls the adapter"),
        ("services", "of every other process of the framework"),
        ("test", "of the test's process"),
        ("suite", "tuneoff's supervision; not the job's"),
        ("other", "other programs; not the job's"),
        ("unreserved", "idle power of processors that no slot reserves; not the job's"),
        ("node", "the host (or hosts) as a whole, over the run"),
        ("window.busy", "all slots while busy, in the slot window"),
        ("window.overhead", "all slots while overhead, in the slot window"),
        ("window.idle", "all slots while idle, in the slot window"),
    ),
    *family("energy.", "J", ("residual", "node - all parts, signed; null with the model"), is_signed=True),
    *family("energy.", "%", ("residual_share", "residual / node; flagged above 2 %"), scale="difference", is_signed=True),
    *family("energy.", "%", ("idle_share", "WR: idle / (busy + overhead + idle), in the slot window", "WR"), scale="difference"),
    *_steps("energy", "J", "the job in the part {}"),
    *family(
        "energy.",
        "s",
        ("cpu_seconds", "CPU time of the job", "CPU"),
        ("cpu_seconds_without_test", "the same, less what was used in the part test"),
        ("trial_cpu_seconds", "CPU time of busy trials"),
    ),
    *family("energy.", "s", ("reserved_core_seconds", "workers.cpus by the time of all slots", "cores"), shown="core-s"),
    *family(
        "energy.",
        "s",
        ("reserved_core_seconds_without_test", "the same, less the part test"),
        ("trial_core_seconds", "workers.cpus by the busy time of trials"),
    ),
    *family("energy.", "J/s", ("joules_per_cpu_second", "a weight of the model")),
    *family("energy.", "W", ("watts_per_core", "a weight of the model")),
    *family(
        "energy.",
        "ratio",
        ("weight_ratio_low", "low end of the plausible watts_per_core / joules_per_cpu_second; its source names the servers"),
        ("weight_ratio_high", "high end of that"),
    ),
    *family(
        "carbon.",
        "g/kWh",
        ("trial_intensity", "CINT: mean over the trials of their intensity, weighted by power over time"),
        ("trial_intensity_weighted", "the same over all trials at once"),
        ("job_intensity", "JCINT: the same over the job"),
    ),
    *family("carbon.", "count", ("trials_left_out", "trials without energy, which CINT leaves out")),
    *family(
        "carbon.",
        "g",
        ("trials", "CO2e of the trials: power by intensity over time"),
        ("job", "CO2e of the job", "CO2e"),
        ("job_without_test", "the same, less what was caused in the part test", "CO2e w/o test"),
        ("per_completed_trial", "CO2e of the job over the completed trials"),
        ("per_completed_trial_without_test", "job_without_test over the completed trials"),
    ),
    *_steps("carbon", "g", "CO2e of the part {}"),
    *family(
        "cost.",
        "USD",
        ("job", "OC: price per hour by billed hours of slots, head node and database; own premises: cost.energy", "OC"),
        ("job_without_test", "the same of the job without its part test, by the hours billed then", "OC w/o test"),
        ("slots", "of the slots, rounded up as billed"),
        ("head_node", "of the head node, rounded up as billed"),
        ("database", "of the database, rounded up as billed"),
        ("energy", "own premises: energy of the job by the tariff"),
        ("per_completed_trial", "cost.job over the completed trials", "OC/trial"),
        ("per_completed_trial_without_test", "cost.job_without_test over the completed trials", "OC/trial w/o test"),
    ),
    *_steps("cost", "USD", "price by time of the part {}, without rounding"),
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
    *family("nodes.", "s", ("cpu_seconds", "CPU time in use on whole nodes during the run, all programs included (Prometheus)")),
    *family("nodes.", "MB", ("peak_memory", "highest memory in use on one node at a scrape in the run (Prometheus)")),
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
