"""What each flag of a run means, and its weight: `tuneoff explain FLAG`. A test holds the names to those in the sources."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

WRONG_RESULT: Mapping[str, str] = {  # the framework answered wrongly, or did something else than it was asked for
    "best_differs": "the framework's best trial is not the one that core finds best",
    "best_value_differs": "the framework's value of its best trial is not the one in the events",
    "unknown_best": "the framework's best trial is in no event",
    "foreign_configurations": "`fixed` or `grid`: trials trained other configurations than the given ones; the run is failed",
    "missing_configurations": "`fixed` or `grid`: some of the given configurations were not trained",
    "configuration_changed": "what was trained is not what was submitted",
    "scripted_stop_missed": "`pruner: scripted`: a trial that had to stop ran to its end",
    "over_budget": "the framework asked for more than the budget; what was refused is in `refusals`",
    "attempt_repeated": "an attempt was run again under the same number",
}
SERIOUS: Mapping[str, str] = {  # a result, a trial or a figure of the run is wrong or lost, or may be
    **WRONG_RESULT,
    "declared_mismatch": "a declared variable differs from what was observed: tuneoff watch --declared",
    "sampler_without_model": "the budget ends before the sampler first uses its model: this run is random search",
    "emulated_platform": "a local stand-in served the framework, so its figures are not the framework's: in no comparison",
    "foreign_events": "an event file belongs to another execution",
    "orphan_events": "events of a trial that was never submitted or started",
    "missing_lines": "lines of an event file are missing",
    "unreadable_event": "a line of an event file cannot be read",
    "more_processes_than_workers": "more trial processes were there than workers: those without an attempt share the other slots",
    "trials_share_a_slot": "trials overlapped on a slot while another was empty: busy time and overhead are too small",
    "energy_residual": "the parts of the energy and the metered energy of the node differ by more than 2 %",
    "optimum_not_completed": "Katib: its optimal trial did not complete, or it names none; core's best completed one was taken",
    "collector_died": "Katib: a completed trial counts there as failed, because the metrics collector failed",
    "metrics_unavailable": "Katib: a completed trial counts there as without metrics, because the metrics collector failed",
    "other_code": "Katib: the trials' image has another tuneoff than the one that ran the experiment",
    "pod_log_rotated": "Katib: a node cut a pod's log, so lines of it may be missing",
    "host_unchecked": "Ray Tune: a node that joined its cluster late differs from the others, or could not be checked",
    "share_exceeded": "`copies`: processes of this one were ended, because it had used up its share of the machine's memory",
    "sampler_exhausted": "Syne Tune: it proposed fewer configurations than were asked for",
}
MACHINE: Mapping[str, str] = {  # results hold; times, energy and cost may be off
    "disturbed": "other programs used more than 10 % of the run's processors during its trial step",
    "steal": "the hypervisor took more than 2 % of the processors' time during the run",
    "machine_drift": "the sentinel (CPU time of SHA-256 of 32 MiB) took over 25 % more than at the folder's fastest look",
    "machine_changed": "the clock source or the frequency governor changed since the folder's first look",
    "earlier_survivor": "processes of an earlier run of this folder are alive",
    "low_memory": "less memory is free than the workers may use, or less than 1 GB and less than 10 % of all",
    "cpu_throttled": "the processors were throttled for heat between the look before the run and its end",
    "too_few_processors": "the workers' CPUs are more than the processors or the quota available: trials waited for each other",
    "share_not_limited": "`copies`: no control group held this one to its share of the machine, so each took what it could",
    "cgroup_not_joined": "a trial's process could not enter its slot's control group: memory or CPU quota did not limit it",
    "processors_not_limited": "a trial's process could not be put on the processors of its slot",
    "host_lost": "a host of the run stopped answering: its trials ended or were retried; its processes end by themselves",
    "pods_waited": "Katib: the cluster had no room for some pods for over 1 s: at times fewer trials ran than there are workers",
    "trial_outlives_kill": "Syne Tune: a process survived SIGKILL for 10 s",
}
HARMLESS: Mapping[str, str] = {  # good to know, and nothing is wrong by it
    "checkpoint_lost": "a retry could not read its trial's checkpoint, so it began at the first epoch",
    "stopped_at_goal": "`objective.stop`: the framework ended the run once a trial had met the goal",
    "stopped_by_core": "`objective.stop`: the framework cannot end a run at its goal, so tuneoff asked it for no more trials",
    "best_tied": "the framework's best trial is not core's, but has an equal value",
    "started_before_submitted": "a trial started before its submission was logged",
    "log_shortened": "more than 5 MB were printed into a log: its first 1 MB and its last 4 MB were kept",
    "low_disk": "less than 1 GB is free in the results folder or in the temporary folder",
    "slow_clock_source": "the kernel reads the time from a slow or coarse source (hpet, acpi_pm, jiffies, ...)",
    "frequency_limited": "a processor may not reach its maximum frequency",
    "left_behind": "a process outlived the run and was ended, or a folder, control group, shared memory or object of a cluster "
    "could not be removed; the text says what, and how to remove it",
    "waste_lower_bound": "attempts died with the whole run, unseen: they count up to their last event, so waste is a lower bound",
    "power_problem": "a problem occurred while power was sampled; the run's other results are kept",
    "pod_log_unreadable": "Katib: a pod's log could not be read to its end; its trial ended by what the cluster's objects say",
    "configuration_repeated": "Katib: it gave a configuration of `fixed` or `grid` again; one more trial took its place",
    "delete_refused": "Katib: the API server refused to delete a pod or experiment over its limit; its own deadline ends it",
}
EXCLUDING = ("emulated_platform",)  # serious flags that keep a run out of every ranking, verdict and comparison
FLAGS: Mapping[str, str] = {**SERIOUS, **MACHINE, **HARMLESS}


def weight(name: str) -> str:
    """Return how much a flag weighs, in words; "" for one that is not known here."""
    if name in SERIOUS:
        return "serious: a result, a trial or a figure may be wrong"
    if name in MACHINE:
        return "of the machine: results hold, times, energy and cost may be off"
    return "harmless: good to know" if name in HARMLESS else ""


def marked(names: Iterable[str]) -> list[str]:
    """Return the names of flags, each once, the serious ones first and with a sign: `! best_differs`."""
    ordered = sorted(dict.fromkeys(names), key=lambda name: name not in SERIOUS)
    return [f"! {name}" if name in SERIOUS else name for name in ordered]
