"""What a framework adds to a trial, by stage, and how late its stops are."""

from __future__ import annotations

import statistics
from collections import defaultdict

from tuneoff.metrics.segments import Interval, busy_ns, length, on_slots, presences, union, waits
from tuneoff.metrics.slots import trial_window
from tuneoff.metrics.values import MetricValue, known, milliseconds, missing
from tuneoff.records.model import AttemptRecord, RunRecord, TrialRecord

NO_TRIAL = "no trial started"
NO_EXIT = "no exit of a trial's own process was seen"
SLOT_STAGES = {
    "process_start": "from the start of a trial's process to its imports done",
    "between": "a process waits: the next trial is not yet submitted (tell, ask, scheduling)",
    "dispatch": "the trial is submitted, its process is there and waits for it",
    "report": "the trial waits inside `report`",
    "exit": "from the trial's end until its own process is gone, where that was seen",
    "vacant": "no process is seen on the slot, though a trial is still to come on it (dispatch, unseen exits)",
}


def slot_stages_ns(run: RunRecord, window: Interval) -> dict[str, int]:
    """Return what kept the slots from being busy while trials were still to come on them, by stage, in ns.

    All but `vacant` are disjoint pieces of what `slot_times` counts as overhead, told apart by the events inside them.
    `vacant` is idle time of the slot, from the window's start to the start of the slot's last attempt: with it, a
    framework that starts a process per trial and one whose workers live long are measured alike. Stages and busy time
    are all of a slot's time up to its last trial; nothing is left over but where attempts overlap on a slot.
    """
    slots = on_slots(run)
    around = presences(slots)
    totals = dict.fromkeys(SLOT_STAGES, 0)
    for slot, items in slots.items():
        if not items:
            continue
        taken = union((item.started_ns, item.ended_ns) for item in items)
        by_start = {item.started_ns: item.attempt for item in items}
        told = window[0]  # up to here
        for start, end in sorted(around.get(slot, ())):
            for stage, begin, finish in _pieces(max(start, told), end, by_start.get(end)):
                piece = max(begin, window[0]), min(finish, window[1])
                if piece[0] < piece[1]:
                    totals[stage] += piece[1] - piece[0] - length(taken, piece)
            told = max(told, end)
        for item in items:
            totals["report"] += length(list(waits(item.attempt)), window)
        before_last = window[0], max(window[0], min(items[-1].started_ns, window[1]))
        present = union([*around.get(slot, ()), *taken])
        totals["vacant"] += before_last[1] - before_last[0] - length(present, before_last)
    return totals


def _pieces(start: int, end: int, attempt: AttemptRecord | None) -> list[tuple[str, int, int]]:
    """Split a process's time before an attempt (None: after its last) into stages; none is left where `end <= start`."""
    if attempt is None:
        return [("exit", start, end)]
    ready = attempt.imported_ns if attempt.imported_ns is not None else start
    ready = min(max(ready, start), end)
    submitted = attempt.submitted_ns if attempt.submitted_ns is not None else ready
    submitted = min(max(submitted, ready), end)
    return [("process_start", start, ready), ("between", ready, submitted), ("dispatch", submitted, end)]


def delivery_ns(run: RunRecord) -> list[int]:
    """Return, per first attempt, the time from submission to the start of the trial; the framework's latency, in ns."""
    return [
        attempt.started_ns - attempt.submitted_ns
        for trial in run.trials
        for attempt in trial.attempts[:1]
        if attempt.started_ns is not None and attempt.submitted_ns is not None
    ]


def overhead_metrics(run: RunRecord) -> dict[str, MetricValue]:
    """Return overhead per trial (ms of slot time in the trial span), by stage, and the framework's own timed stages."""
    used = sum(trial.used_ticket for trial in run.trials)
    values: dict[str, MetricValue] = {}
    window = trial_window(run)
    stages = slot_stages_ns(run, window) if window is not None else dict.fromkeys(SLOT_STAGES, 0)
    for name, total in {"per_trial": sum(stages.values()), **stages}.items():
        each = total / used / 1e6 if used else None
        values[f"overhead.{name}"] = known(each, "ms", n_samples=used) if each is not None else missing("ms", NO_TRIAL)
    exits = sum(attempt.exited_ns is not None for trial in run.trials for attempt in trial.attempts)
    if used:
        seen = known(stages["exit"] / used / 1e6, "ms", n_samples=exits)
        values["overhead.exit"] = seen if exits else missing("ms", NO_EXIT)
    delivered = delivery_ns(run)
    median = round(statistics.median(delivered)) if delivered else None
    values["overhead.submission_to_start"] = milliseconds(median, NO_TRIAL, n_samples=len(delivered))
    loads = [
        attempt.loaded_ns - attempt.started_ns
        for trial in run.trials
        for attempt in trial.attempts
        if attempt.loaded_ns is not None and attempt.started_ns is not None
    ]
    load = round(statistics.fmean(loads)) if loads else None
    values["trial_execution.load"] = milliseconds(load, "no trial had loaded", n_samples=len(loads))
    for record in run.stages:
        values[f"stage.{record.name}"] = milliseconds(
            round(record.total_ns / record.count), "", kind="measured", n_samples=record.count
        )
    return values


def stop_latencies_ns(run: RunRecord) -> list[int]:
    """Return, per trial that was stopped early, the time from the report of its losing epoch to its real end."""
    return [
        end - due
        for trial in run.trials
        if trial.state == "pruned"
        and (due := stop_due_ns(trial)) is not None
        and (end := trial.attempts[-1].ended_ns) is not None
    ]


def stop_due_ns(trial: TrialRecord) -> int | None:
    """Return when a trial should have stopped: the report of its losing epoch; None without a decision."""
    if trial.stop_epoch is None:
        return None
    epochs = trial.attempts[-1].epochs
    return next((epoch.ended_ns for epoch in epochs if epoch.epoch == trial.stop_epoch), None)


def stop_metrics(run: RunRecord) -> dict[str, MetricValue]:
    """Return stop latency in ms, epochs and busy time after the decision, and stops that never came."""
    latencies = stop_latencies_ns(run)
    none = "no trial was stopped early"
    values: dict[str, MetricValue] = {}
    for name, pick in (("median", statistics.median), ("mean", statistics.fmean), ("max", max)):
        picked = round(pick(latencies)) if latencies else None
        values[f"stop_latency.{name}"] = milliseconds(picked, none, n_samples=len(latencies))
    late: dict[str, int] = defaultdict(int)
    for trial in run.trials:
        due = stop_due_ns(trial)
        if due is None or trial.stop_epoch is None:
            continue
        last = trial.attempts[-1]
        late["decided"] += 1
        late["epochs"] += sum(epoch.epoch > trial.stop_epoch for epoch in last.epochs)
        late["busy_ns"] += busy_ns(last, after_ns=due)
        late["ignored"] += trial.state == "completed"
    if not late["decided"]:
        return {**values, **{name: missing(unit, none) for name, unit in _LATE.items()}}
    values["stop.epochs_after_decision"] = known(late["epochs"], "count", n_samples=late["decided"])
    values["stop.busy_after_decision"] = milliseconds(late["busy_ns"], none, n_samples=late["decided"])
    values["stop.ignored"] = known(late["ignored"], "count", n_samples=late["decided"])
    return values


_LATE = {"stop.epochs_after_decision": "count", "stop.busy_after_decision": "ms", "stop.ignored": "count"}
