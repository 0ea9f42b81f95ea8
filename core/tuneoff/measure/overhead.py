"""What a framework adds to a job, to a trial and to a report, by stage, and how late its stops are."""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from fractions import Fraction

from tuneoff.measure.presence import Presence, Present, following
from tuneoff.measure.slots import trial_window
from tuneoff.measure.spans import Interval, busy_ns, length, started_attempts, waits
from tuneoff.record.metric_value import MetricValue, metric_value, metric_value_or, milliseconds, missing
from tuneoff.record.run_record import RunRecord, TrialRecord

NO_TRIAL = "no trial started"
NO_FURTHER = "there were no more trials than workers"
NO_REPORT = "no trial reported an epoch"
NO_STORAGE = "the adapter reports no storage use"
NO_EXIT = "no exit of a trial's own process was seen"
SLOT_STAGES = {
    "process_start": "from the start of a trial's process to its imports done, or to its end in them",
    "between": "a process waits: the next trial is not yet submitted (tell, ask, scheduling)",
    "dispatch": "the trial is submitted, its process is there and waits for it",
    "report": "the trial waits inside `report`",
    "exit": "from the trial's end until its own process is gone, where that was seen",
    "vacant": "no process is seen on the slot, though one with a trial is still to come (dispatch, unseen exits)",
}
BY_PROCESS = ("process_start", "exit", "vacant")  # once per process; the other stages: once per trial or report


def reports_of(presence: Presence, window: Interval) -> tuple[int, float | None]:
    """Return how many reports a run made, and the mean wait in each in ns: of all, or of those before a trial's last where less.

    What a trial's last one waits beyond that (it may be the only one that the framework is told, or never return) is the trial's.
    """
    number, total, earlier, earlier_total = 0, 0, 0, 0
    for items in presence.slots.values():
        for attempt in (item.attempt for item in items if item.attempt.epochs):
            intervals, last, ended = waits(attempt), attempt.epochs[-1].reported_ns, attempt.ended_ns
            of_last = intervals[-1:] if intervals and intervals[-1][1] in (last, ended) else []
            reports = sum(epoch.reported_ns is not None for epoch in attempt.epochs) + (last is None and bool(of_last))
            number, total = number + reports, total + length(intervals, window)
            earlier += max(0, reports - 1)
            earlier_total += length(intervals[: len(intervals) - len(of_last)], window)
    if not number:
        return 0, None
    return number, min(total / number, earlier_total / earlier if earlier else total / number)


def slot_stages_ns(presence: Presence, window: Interval) -> dict[str, int | Fraction]:
    """Return what kept the slots from being busy while trials were still to come on them, by stage, in ns.

    All but `vacant` are disjoint pieces of what `slot_times` counts as overhead, told apart by the events inside them.
    `vacant` is idle time of as many slots as processes with trials are still to come: with it, a framework that starts a
    process per trial and one whose workers live long are measured alike.
    """
    totals: dict[str, int | Fraction] = dict.fromkeys(SLOT_STAGES, 0)
    for around in presence.around.values():
        for piece in around:
            for process in piece.processes:
                for stage, start, end in _stages(process, piece.start_ns, piece.end_ns):
                    inside = min(end, window[1]) - max(start, window[0])
                    if inside > 0:
                        totals[stage] += Fraction(inside, len(piece.processes))
    for items in presence.slots.values():
        for item in items:
            totals["report"] += length(waits(item.attempt), window)
    for start, end, slots in presence.vacant:
        totals["vacant"] += slots * max(0, min(end, window[1]) - max(start, window[0]))
    return totals


def _stages(process: Present, start: int, end: int) -> Iterator[tuple[str, int, int]]:
    """Yield the stages of an interval in which a process runs no attempt (but such as take no time)."""
    while start < end:
        index = following(process, start)
        if index == len(process.items):
            yield "exit" if process.items else "process_start", start, end
            return
        attempt, until = process.items[index].attempt, min(end, process.items[index].started_ns)
        since = process.items[index - 1].ended_ns if index else start
        ready = min(max(attempt.imported_ns if attempt.imported_ns is not None else since, start), until)
        submitted = min(max(attempt.submitted_ns if attempt.submitted_ns is not None else ready, ready), until)
        yield from (("process_start", start, ready), ("between", ready, submitted), ("dispatch", submitted, until))
        start = until


def overhead_metrics(run: RunRecord, presence: Presence) -> dict[str, MetricValue]:
    """Return overhead per trial (ms of slot time in the trial span), by stage, and the framework's own timed stages."""
    used = sum(trial.used_ticket for trial in run.trials)
    values: dict[str, MetricValue] = {}
    window = trial_window(run)
    stages = slot_stages_ns(presence, window) if window is not None else dict.fromkeys(SLOT_STAGES, 0)
    number, waited = reports_of(presence, window) if window is not None else (0, None)
    for name, total in {"per_trial": sum(stages.values()), **stages}.items():
        values[f"overhead.{name}"] = metric_value_or(float(total) / used / 1e6 if used else None, "ms", NO_TRIAL, n_samples=used)
    # a job with more and longer trials would not repeat the first process of each worker, whoever takes its first trial; those
    # after it are of the trials that they ran, which each further one adds as it adds its reports
    processes, workers = len({attempt.process for _, attempt in started_attempts(run)}), run.run_spec().experiment.workers.count
    first = min(processes, workers)
    per_process = sum(stages[name] for name in BY_PROCESS) / processes if processes else 0
    start = float(first * per_process / workers) / 1e6 if used else None
    values["overhead.job_start"] = metric_value_or(start, "ms", NO_TRIAL, n_samples=first)
    further = None
    if used > workers:
        of_trials = sum(total for name, total in stages.items() if name not in BY_PROCESS) - number * (waited or 0.0)
        of_processes = (processes - first) * per_process / (used - first)
        further = max(0.0, float(of_trials / used + of_processes)) / 1e6  # never below 0 by rounding
    no_further = NO_FURTHER if used else NO_TRIAL
    values["overhead.further_trial"] = metric_value_or(further, "ms", no_further, n_samples=used - first)
    per_report = waited / 1e6 if waited is not None else None
    values["overhead.per_report"] = metric_value_or(per_report, "ms", NO_REPORT, n_samples=number)
    values["overhead.reports"] = metric_value_or(number / used if used else None, "count", NO_TRIAL, n_samples=used)
    exits = sum(attempt.exited_ns is not None for trial in run.trials for attempt in trial.attempts)
    if used:
        seen = metric_value(float(stages["exit"]) / used / 1e6, "ms", n_samples=exits)
        values["overhead.exit"] = seen if exits else missing("ms", NO_EXIT)
    delivered = [  # the framework's latency, of first attempts
        attempt.started_ns - attempt.submitted_ns
        for trial in run.trials
        for attempt in trial.attempts[:1]
        if attempt.started_ns is not None and attempt.submitted_ns is not None
    ]
    median = round(statistics.median(delivered)) if delivered else None
    values["overhead.submission_to_start"] = milliseconds(median, NO_TRIAL, n_samples=len(delivered))
    loads = [
        attempt.loaded_ns - (attempt.started_ns or 0) for _, attempt in started_attempts(run) if attempt.loaded_ns is not None
    ]
    load = round(statistics.fmean(loads)) if loads else None
    values["trial_execution.load"] = milliseconds(load, "no trial had loaded", n_samples=len(loads))
    for record in run.stages:
        values[f"stage.{record.name}"] = milliseconds(
            round(record.total_ns / record.count), "", kind="measured", n_samples=record.count
        )
    return values


def storage_metrics(run: RunRecord) -> dict[str, MetricValue]:
    """Return what a used trial asked of the framework's storage, what it left there, and what that cost on both sides."""
    used = sum(trial.used_ticket for trial in run.trials)

    def per_trial(name: str, unit: str, parts: float = 1, reason: str = "") -> MetricValue:
        total = run.storage.get(name)
        if total is None or not used:
            reason = NO_STORAGE if not run.storage else reason if used else NO_TRIAL
            return missing(unit, reason, kind="measured", source="storage_used")
        return metric_value(total / parts / used, unit, kind="measured", source="storage_used", n_samples=used)

    return {
        "storage.operations": per_trial("operations", "count"),
        "storage.bytes": per_trial("bytes", "bytes", reason="others may use that storage too"),
        "storage.client_cpu": per_trial("client_cpu_ns", "ms", 1e6),
        "storage.server_cpu": per_trial("server_cpu_ns", "ms", 1e6, "the run started no server for its storage"),
    }


def stop_due_ns(trial: TrialRecord) -> int | None:
    """Return when a trial should have stopped: the report of its losing epoch; None without a decision."""
    if trial.stop_epoch is None:
        return None
    epochs = trial.attempts[-1].epochs
    return next((epoch.ended_ns for epoch in epochs if epoch.epoch == trial.stop_epoch), None)


def stop_metrics(run: RunRecord) -> dict[str, MetricValue]:
    """Return stop latency in ms, epochs and busy time after the decision, and stops that never came."""
    decided = [(trial, due) for trial in run.trials if (due := stop_due_ns(trial)) is not None]
    latencies = [  # from the report of a stopped trial's losing epoch to its real end
        end - due for trial, due in decided if trial.state == "pruned" and (end := trial.attempts[-1].ended_ns) is not None
    ]
    none = "no trial was stopped early"
    values: dict[str, MetricValue] = {}
    for name, pick in (("median", statistics.median), ("mean", statistics.fmean), ("max", max)):
        picked = round(pick(latencies)) if latencies else None
        values[f"stop_latency.{name}"] = milliseconds(picked, none, n_samples=len(latencies))
    late_epochs = sum(
        epoch.epoch > (trial.stop_epoch or 0) and not epoch.restored
        for trial, _ in decided
        for epoch in trial.attempts[-1].epochs
    )
    late_ns = sum(busy_ns(trial.attempts[-1], after_ns=due) for trial, due in decided)
    ignored = sum(trial.state == "completed" for trial, _ in decided)
    count = len(decided)
    values["stop.epochs_after_decision"] = metric_value_or(late_epochs if count else None, "count", none, n_samples=count)
    values["stop.busy_after_decision"] = milliseconds(late_ns if count else None, none, n_samples=count)
    values["stop.ignored"] = metric_value_or(ignored if count else None, "count", none, n_samples=count)
    return values
