"""Every metric that a run can have, one row each: unit, direction, scale, and whether it is compared between machines.

`N` in a name stands for a slot, `NAME` for a score of the test, a stage of the framework or a part of the job. A test holds it
to `with_metrics`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from tuneoff.base.reading import Refused
from tuneoff.base.targets import nearest

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
_STEP = f"in its part NAME: {', '.join(STEPS)}"
_POLICIES = {
    "default": "attempts that failed, timed out, were cancelled or superseded, but for what a retry restored and used; trials "
    "that were stopped or should have been, but for what led to the selected checkpoint",
    "post_goal": "all work after the goal was met",
}
_WASTED = {
    "time": ("ms", "busy time"),
    "core_time": ("core-ms", "busy time by workers.cpus"),
    "energy": ("kWh", "energy of the wasted busy segments"),
    "cost": ("USD", "busy hours by the price of a slot"),
}
_ABBREVIATIONS = {"waste.default.time": "WTT", "waste.default.energy": "WTE", "waste.default.cost": "WTC"}
QUESTIONS = {  # and the primary metric of each
    "quality": "quality.test",
    "time": "time.jct_without_test",
    "overhead": "overhead.per_trial",
    "energy": "energy.per_completed_trial_without_test",
    "cost": "cost.per_completed_trial_without_test",
}
FURTHER = (  # what `report --json` has the figures of, beside the metrics of its tables
    *(f"overhead.{name}" for name in ("job_start", "further_trial", "per_report", "reports")),
    *(f"trials.{name}" for name in ("used", "completed", "failed", "pruned", "per_second")),
    *("time.metric_collection", "epochs.trained", "energy.job"),
    *("slots.utilization", "memory.driver_peak_rss", "stage.ask"),
)
DEVICE_PEAK = "memory.device_peak[N]"
_NAMED = re.compile(rf"^(test|stage|phase)\..+|^(\w+\.step)\.(?:{'|'.join(STEPS)})$|^(goal)\..+(?=\.seconds$)")


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
    table_unit: str = ""  # the unit in tables, where it is not the usual one


def family(prefix: str, unit: str, *rows: tuple[str, str] | tuple[str, str, str], **about: Any) -> Iterator[Metric]:
    """Yield metrics that share all but name, title and heading; `about`: the other fields of a `Metric`.

    Counts, shares and scores are compared by their difference, all else by its ratio.
    """
    about.setdefault("scale", "difference" if unit in ("count", "%", "") else "ratio")
    for name, title, *heading in rows:
        yield Metric(name=f"{prefix}{name}", title=title, unit=unit, heading="".join(heading), **about)


def _waste() -> Iterator[Metric]:
    for measure, (unit, what) in _WASTED.items():
        for policy, text in _POLICIES.items():
            name = f"{policy}.{measure}"
            title = f"{what}: {text}"
            yield from family("waste.", unit, (name, title, _ABBREVIATIONS.get(f"waste.{name}", "")))


_ROWS = (
    *family(
        "time.",
        "ms",
        ("jct", "job completion time: start of deploy to end of un-deploy; the sum of its seven parts", "JCT"),
        ("deploy", "part of the JCT: the call of `deploy` to its return", "deploy"),
        ("setup", "part of the JCT: the end of deploy to the first submission of a trial", "setup"),
        ("trial", "part of the JCT: the first submission to the end of the last trial, in whatever state", "trials"),
        ("result_collection", "part of the JCT: the end of the last trial to the moment when the best is known", "collect"),
        ("test", "part of the JCT: best known to the return of the test step", "test step"),
        ("metric_collection", "part of the JCT: the end of the test to the return of the metrics step"),
        ("undeploy", "part of the JCT: the end of metric collection to the (last) return of un-deploy", "un-deploy"),
        ("unassigned", "time in no part: 0 in a complete run"),
        ("jct_without_test", "JCT - test: the primary time of a comparison", "JCT w/o test"),
        ("jct_without_metric_collection", "JCT - metric collection"),
        ("preparation", "deploy + setup", "first trial"),
        ("optimization", "end of deploy to end of test"),
        ("evaluation", "end of the last trial to end of test"),
        ("result_collection_from_last_completed", "end of the last completed trial to best known"),
        ("clock_uncertainty", "bound of the error of aligning hosts; 0 on one host"),
    ),
    *family(
        "quality.",
        "",
        ("validation", "best validation value of the trial that the framework named best", "validation"),
        ("validation_of_core_best", "the same of core's best trial: by value, validation loss, hash of the configuration"),
        ("test", "the test score that means the same as the objective's metric", "test"),
        better="objective",
        is_counted=True,
    ),
    *family(
        "quality.",
        "",
        ("optimism", "validation - test for `max`, test - validation for `min`: above 0 where validation looked too good"),
        is_counted=True,
        is_signed=True,
    ),
    *family(
        "goal.",
        "s",
        ("seconds", "first submission to the epoch that met `objective.goal`, the hardest of several"),
        ("NAME.seconds", "the same of one of several goals"),
    ),
    *family(
        "goal.",
        "count",
        ("trials", "trials begun by then"),
        ("epochs", "epochs trained by then, over all trials"),
    ),
    *family(
        "trials.",
        "count",
        ("submitted", "trials that the framework handed over, refused ones included"),
        ("used", "trials that started, each with a ticket of the budget"),
        ("never_started", "submitted, but no process took them up"),
        ("refused", "requests beyond the budget"),
        ("retries", "attempts beyond the first"),
        ("distinct_configurations", "different configurations among the used trials"),
        ("ended_early", "completed trials whose training ended by itself, or at the goal, before its planned epochs"),
        ("pruned", "used trials that ended as pruned"),
        ("failed", "used trials that ended as failed"),
        ("cancelled", "used trials that ended as cancelled"),
        ("timed_out", "used trials that ended as timed_out"),
        ("failed_before_start", "failed or timed out without a ticket"),
        is_counted=True,
    ),
    *family(
        "trials.",
        "count",
        ("completed", "used trials that ended as completed"),
        better="higher",
        is_counted=True,
    ),
    *family("trials.", "1/s", ("per_second", "used / (last end - first submission)"), better="higher"),
    *family("trials.", "%", ("of_budget", "used / budget.trials"), better="higher", is_counted=True),
    *family("epochs.", "count", ("trained", "epochs of all attempts"), is_counted=True),
    *family(
        "epochs.",
        "%",
        ("of_budget", "trained / budget.epochs_total, else / (trials by epochs per trial); above 100 by retries"),
        better="higher",
        is_counted=True,
    ),
    *family(
        "failures.",
        "count",
        *(
            (name, f"failed and timed-out trials that are charged to {name}")
            for name in ("framework", "workload", "infrastructure", "user")
        ),
        is_counted=True,
    ),
    *family(
        "trial_execution.",
        "ms",
        *((name, f"{name} of the busy time of a used trial, its attempts together") for name in ("mean", "median", "min", "max")),
        ("load", "mean time from an attempt's start until its data and model are loaded"),
    ),
    *family(
        "slots.",
        "slot-s",
        ("busy", "an attempt loads, trains, validates or saves; over all slots from end of deploy to best known"),
        ("overhead", "an attempt waits in `report`, or a process is present without one; over all slots"),
        ("idle", "neither busy nor overhead; over all slots"),
        ("slot_time", "slots by window: the sum of busy, overhead and idle"),
    ),
    *family(
        "slots.",
        "%",
        ("overhead_share", "overhead / slot time"),
        ("idle_share", "idle / slot time", "idle"),
    ),
    *family(
        "slots.",
        "%",
        ("utilization", "busy time / slot time from the first submission to the last end"),
        better="higher",
    ),
    *family(
        "slots.",
        "s",
        ("overlapped", "time in which attempts overlapped on a slot"),
        ("crowded", "time in which more processes were present than there are workers"),
        *((f"{name}[N]", f"{name} time of slot N") for name in ("busy", "overhead", "idle")),
    ),
    *family(
        "slots.",
        "count",
        ("greatest_overlap", "most attempts at once; above workers.count the framework ran too many"),
    ),
    *family("slots.", "ms", ("trial_gap_median", "end of an attempt to the start of the next on the same slot")),
    *family(
        "overhead.",
        "ms",
        (
            "per_trial",
            "slot time without training while trials were still to come, per used trial: the sum of the six below",
            "overhead",
        ),
        ("process_start", "start of a trial's process until its imports are done"),
        ("between", "a process waits: the next trial is not submitted yet (tell, ask, scheduling)"),
        ("dispatch", "the trial is submitted, and its process is there and waits for it"),
        ("report", "the trial waits inside `report`"),
        ("exit", "the trial's end until its own process is gone, where that was seen"),
        ("vacant", "no process on a slot, though one with a trial is still to come"),
        ("job_start", "of these, start, exit and vacancy of each worker's first process, which more trials would not repeat"),
        (
            "further_trial",
            "what each trial beyond the workers' first ones adds: its stages without its reports, its process if it has its own",
        ),
        ("per_report", "what each report adds: the mean wait; what a trial's last one waits beyond it is in further_trial"),
        ("submission_to_start", "median from submission to start, of first attempts"),
        table_unit="ms",
    ),
    *family(
        "overhead.",
        "count",
        ("reports", "mean number of reports of a used trial: of every epoch, or those that the framework gets"),
    ),
    *family(
        "items.",
        "1/s",
        ("per_second", "items that trials trained on per second of training, each attempt's first epoch left out", "items"),
        better="higher",
    ),
    *family(
        "items.",
        "%",
        ("variation", "standard deviation of a trial's epochs over their mean, in items per second: median of the trials"),
    ),
    *family("phase.", "%", ("NAME", "share that a phase (load, forward, ...) had of trials' busy time")),
    *family("stage.", "ms", ("NAME", "mean of the framework's own timed work: ask, tell, stop, ...")),
    *family(
        "storage.",
        "count",
        ("operations", "per used trial: SQL statements and commits, Redis commands, server calls, or journal reads and appends"),
        scale="ratio",
    ),
    *family("storage.", "bytes", ("bytes", "what the framework's storage grew by, per used trial")),
    *family(
        "storage.",
        "ms",
        ("client_cpu", "CPU time of the workers in ask, report and tell, per used trial"),
        ("server_cpu", "CPU time of a storage's server that the run started, per used trial"),
    ),
    *family(
        "stop_latency.",
        "ms",
        *(
            (name, f"{name} from before the losing epoch's report to the real end, over pruned trials")
            for name in ("median", "mean", "max")
        ),
    ),
    *family(
        "stop.",
        "count",
        ("epochs_after_decision", "epochs trained after a decision to stop, over all trials"),
        ("ignored", "trials that ran to their end although a stop was decided"),
    ),
    *family("stop.", "ms", ("busy_after_decision", "busy time after a decision to stop")),
    *_waste(),
    *family("waste.", "count", ("post_goal.trials", "trials that worked on after the goal was met")),
    *family(
        "pruning.",
        "count",
        ("saved_epochs", "epochs that pruned trials did not run (an estimate)"),
        better="higher",
    ),
    *family(
        "pruning.",
        "ms",
        ("saved_time", "these epochs by each trial's own mean epoch, busy time"),
        better="higher",
    ),
    *family("pruning.", "kWh", ("saved_energy", "the energy of that"), better="higher"),
    *family(
        "test.",
        "",
        ("NAME", "a score of the best checkpoint on the test split"),
        better="objective",
        is_counted=True,
    ),
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
    *family("energy.", "%", ("idle_share", "WR: idle / (busy + overhead + idle), in the slot window", "WR")),
    *family(
        "energy.",
        "s",
        ("cpu_seconds", "CPU time of the job", "CPU"),
        ("cpu_seconds_without_test", "the same, less what was used in the part test"),
    ),
    *family("energy.", "s", ("reserved_core_seconds", "workers.cpus by the time of all slots", "cores"), table_unit="core-s"),
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
        (DEVICE_PEAK.removeprefix("memory."), "highest of a slot's processes on its device (workers.devices), as samples saw it"),
    ),
    *family(
        "host.",
        "%",
        ("other_cpu_share", "CPU time of other programs in the trial step (job if under 1 s), of the run's processors"),
    ),
    *family("suite.", "%", ("sampler_cpu_share", "CPU time of the sampling thread, of one core")),
    *family("suite.", "s", ("cpu_seconds", "CPU time of tuneoff's supervising process during the run")),
    *family("suite.", "%", ("cpu_share", "CPU time of that process over the job's", "tuneoff's CPU")),
)
METRICS: Mapping[str, Metric] = {metric.name: metric for metric in _ROWS}


def metric_names() -> tuple[str, ...]:
    """Return every name by family; `N` stands for a slot, `NAME` for a test score, a stage, a phase or a part of the job."""
    return tuple(METRICS)


def general_name(name: str) -> str:
    """Return a name with `N` for its slot and `NAME` for its score, stage, phase or part: "test.accuracy" is a "test.NAME"."""
    return _NAMED.sub(lambda match: f"{match[match.lastindex or 0]}.NAME", re.sub(r"\[\d+\]$", "[N]", name))


def metric(name: str) -> Metric:
    """Return what is known of a metric; of one that no run can have, but a damaged plan may name, that it is a count."""
    entry = METRICS.get(name) or METRICS.get(general_name(name)) or _DERIVED.get(name)
    return entry or Metric(name=name, title="no metric of this name is known", unit="count")


_DERIVED = {  # which a report derives of several runs
    item.name: item
    for item in (
        *family("added.", "s", ("per_job", "what a job takes besides its trials and its test")),
        *family("added.", "ms", ("per_trial", "overhead.further_trial over releases")),
        *family("added.", "MB", ("memory", "memory of 1000 further trials"), scale="difference", is_signed=True),
        *family("copies.", "x", ("slowdown", "mean job time of the copies over that of one job alone")),
        *family("copies.", "%", ("fairness", "Jain's index of the rates of the copies"), better="higher"),
        *family("", "x", ("speed_up", "job time of the seed with the fewest workers over its own"), better="higher"),
        *family("", "%", ("efficiency", "speed-up over the growth of the workers"), better="higher"),
    )
}


def check_metric(name: str) -> None:
    """Refuse a name of a metric that no run can have.

    Raises:
        Refused: it has none; the line has the nearest one, and the others of its family, else the families.
    """
    if general_name(name) in METRICS and not name.endswith("[N]"):
        return
    family = name.partition(".")[0]
    families = dict.fromkeys(item.partition(".")[0] for item in METRICS)
    if family in families:
        hint = f"known of {family!r}: {', '.join(item for item in metric_names() if item.startswith(f'{family}.'))}"
    else:
        hint = f"a name begins with one of: {', '.join(f'{item}.' for item in families)}"
    raise Refused(f"no metric named {name!r}{nearest(name, metric_names())}; {hint}")
