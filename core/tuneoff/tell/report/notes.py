"""The lines under a table of figures: what they mean and rest on, what is missing and why, what is skipped or flagged."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from tuneoff.base.commands import command
from tuneoff.base.format import ESTIMATED, MISSING, counted, figure, listed, number, shown_unit
from tuneoff.base.layout import RUNS
from tuneoff.errors import ResultsError
from tuneoff.experiment.accounting.declared import carbon_line, prices_line, read_accounting
from tuneoff.experiment.names import with_pruner
from tuneoff.judge.groups import Conditions, Group
from tuneoff.judge.results import Run
from tuneoff.judge.warnings import excluded, several_kinds
from tuneoff.record.flag_meanings import marked
from tuneoff.record.metric_value import Kind
from tuneoff.record.run_record import RunRecord
from tuneoff.record.samples.reader import header_of
from tuneoff.record.samples.schema import Header

REPORTS = {"none": "none", "at_end": "its best one, when a trial ends", "every_epoch": "every one"}
MEDIANS = "Medians over seeds, a failed run counting as the worst; below them lowest–highest of the done runs."
ORDER: tuple[Kind, ...] = ("measured", "derived", "declared", "estimated")
ENERGY = "energy.per_completed_trial_without_test"
MEANINGS = {
    "time.jct": "job completion time",
    ENERGY: "energy of the job, with start-up, idle slots and services, but without tuneoff's own test, per completed trial",
    "energy.per_completed_trial": "the same with the test",
    "energy.trial": "energy of a trial's own work",
    "energy.cpu_seconds": "CPU seconds of the job",
    "energy.reserved_core_seconds": "reserved core seconds of the job",
    "carbon.job": "greenhouse gases of the job as CO2",
    "cost.job": "cost of the job",
    "carbon.job_without_test": "CO2e without the test",
    "cost.job_without_test": "cost of the job without the test",
    "waste.default.time": "wasted time of trials (default policy)",
    "waste.default.energy": "their wasted energy",
    "waste.default.cost": "their wasted cost",
    "slots.idle_share": "share of the slots' time in which they were idle",
    "energy.idle_share": "share of their energy in which they were idle",
}
GOAL = ("goal.seconds", "waste.post_goal.time", "waste.post_goal.trials", "waste.post_goal.energy")
SAVED = ("pruning.saved_epochs", "pruning.saved_time", "pruning.saved_energy")


class Circumstances(NamedTuple):
    """One line per meter with why no better one was taken, and per intensity and prices; more than one only if runs differ."""

    meters: tuple[str, ...] = ()
    accounting: tuple[str, ...] = ()


NO_CIRCUMSTANCES = Circumstances()


def circumstances(results: Path, records: Iterable[RunRecord]) -> Circumstances:
    """Return what the executions of a results folder were measured and charged by; a damaged file is a line of its own."""
    meters: dict[str, None] = {}
    accounting: dict[str, None] = {}
    for run in records:
        folder = results / RUNS / run.run_id / run.execution_id
        header = header_of(folder)
        if header is not None:
            meters.update(dict.fromkeys(_meter(header)))
        try:
            charged = read_accounting(folder)
        except ResultsError as error:
            accounting[f"{error}."] = None
            continue
        billed = []  # what makes short runs cost the same
        if (prices := charged.prices) is not None and prices.premises != "own":
            least, unit = prices.billing_minimum_seconds, prices.billing_granularity_seconds
            billed += [f"at least {least:g} s"] if least else []
            billed += [f"in steps of {unit:g} s"] if unit else []
        billing = f"; billed {' and '.join(billed)}" if billed else ""
        texts = (carbon_line(charged), f"{prices_line(charged)}{billing}")
        accounting.update(dict.fromkeys(f"{text[0].upper()}{text[1:]}." for text in texts))
    return Circumstances(meters=tuple(meters), accounting=tuple(accounting))


def _meter(header: Header) -> list[str]:
    reason = f"; {header.reason}" if header.reason else ""
    if header.meter == "none":
        return [f"Meter: none{reason or '; the samples do not say why'}."]
    detail = f"; {header.detail}" if header.detail else ""
    lines = [f"Meter: {header.meter} ({header.kind}): {header.source}{detail}{reason}."]
    if header.idle_problem:
        problem = f"{header.idle_problem[0].upper()}{header.idle_problem[1:]}"
        lines.append(f"{problem}: it is too high, what is attributed to trials too low, and what rests on it estimated (~).")
    return lines


def notes(groups: Sequence[Group]) -> list[str]:
    """Return what the table of figures cannot hold; the groups are in its order."""
    lines = [warning.long for warning in excluded(groups)]
    if any(len(group.done) > 1 or group.failed for group in groups):
        lines.append(MEDIANS)
    if any(group.done for group in groups):
        lines += [
            "JCT w/o test: JCT without the test of the best model, a fresh process of tuneoff, equal for all.",
            "Both include the collection of metrics: tuneoff's own work, without a column.",
        ]
    if uncertainty := max((group.clock_uncertainty for group in groups), default=0.0):
        lines.append(f"Clocks of the hosts agree within {number(uncertainty)} ms.")
    by_label: dict[str, list[Conditions]] = {}
    for group in groups:
        by_label.setdefault(group.label, []).append(group.conditions)
    limits = {label: [text for of in of_label for text in of.cpu_limits] for label, of_label in by_label.items()}
    reports = {label: [REPORTS.get(text, text) for of in of_label for text in of.reports] for label, of_label in by_label.items()}
    lines += [f"Limit of a slot's processors: {text}." for text in _shared(limits)]
    lines += [f"Epochs reported to the framework: {text}." for text in _shared(reports)]
    for label, of_label in by_label.items():
        if changed := dict.fromkeys(text for conditions in of_label for text in conditions.changed_defaults):
            lines.append(f"{label} is changed against its defaults: {'; '.join(changed)}.")
        if any(conditions.process_per_trial for conditions in of_label):
            lines.append(f"{label} starts a process per trial, which imports what the workload needs: that is in its overhead.")
    lines += _goals(groups)
    lines += _same(groups)
    for group in groups:
        ended = [run for run in group.unskipped if run.status not in ("done", "running", "planned")]
        skipped = [run for run in group.runs if run.is_skipped and not group.twins]
        lines += _by_reason(group, ((run, f"skipped: {run.reason or ''}") for run in skipped))
        lines += _by_reason(group, ((run, _end(run)) for run in ended))
        if cancelled := group.counts["cancelled"]:
            lines.append(f"{name(group)}: {counted(cancelled, 'trial')} cancelled")
    return lines + _flags(groups)


def _goals(groups: Sequence[Group]) -> Iterator[str]:
    """Yield what it took to meet the goals, and what was spent after the goal, where there are several or runs end at it."""
    for group in groups:
        objective = group.spec.experiment.objective
        if not group.done or not (objective.stop or objective.goals):
            continue
        named = [f"{goal:g} ({key}) {_figure(group, f'goal.{key}.seconds')}" for key, goal in objective.goals.items()]
        seconds, *spent = (_figure(group, metric) for metric in GOAL)
        met = len(group.estimate("goal.seconds").present)
        first = f"{name(group)}: goal {objective.goal:g} met in {met} of {counted(len(group.done), 'run')}"
        after = f"; spent after it: {', '.join(spent)}" if objective.stop else ""
        yield f"{first}, medians: {', '.join(named) or seconds}{after}."


def _figure(group: Group, metric: str) -> str:
    estimate = group.estimate(metric)
    if estimate.middle is None:
        return MISSING
    if estimate.unit == "count":
        return f"{estimate.middle:g} trials"
    unit, factor = shown_unit(estimate.unit)
    return f"{ESTIMATED if estimate.is_estimated else ''}{figure(estimate.middle * factor)} {unit}"


def name(group: Group) -> str:
    """Return what tells a row from the others: `optuna tpe + asha digits-300-small`."""
    strategy = with_pruner(group.scope.sampler, group.scope.pruner)
    return " ".join(filter(None, (group.label, strategy, group.variant)))


def _end(run: Run) -> str:
    """Return how a run ended, and why."""
    return f"{run.status}: {run.reason}" if run.reason not in (None, run.status) else run.status


def _by_reason(group: Group, runs: Iterable[tuple[Run, str]]) -> list[str]:
    """Return a line per reason with the seeds of its runs."""
    seeds: dict[str, set[int]] = {}
    for run, reason in runs:
        seeds.setdefault(reason, set()).add(run.seed)
    return [
        f"{name(group)} seed{'s' if len(of) > 1 else ''} {', '.join(map(str, sorted(of)))}: {reason}"
        for reason, of in sorted(seeds.items())
    ]


def _same(groups: Iterable[Group]) -> list[str]:
    """Return one line per pair of samplers that are the same for some adapters."""
    pairs: dict[tuple[str, str], list[Group]] = {}
    for group in groups:
        if group.twins:
            pairs.setdefault((group.scope.sampler, group.same_sampler), []).append(group)
    return [
        f"{sampler} is {same} for {listed(group.label for group in twins)}: "
        f"{counted(sum(len(group.runs) for group in twins), 'run')} not repeated"
        for (sampler, same), twins in pairs.items()
    ]


def _flags(groups: Sequence[Group]) -> list[str]:
    """Return a line per flag with its runs by adapter: `! best_differs: 3 of 40 runs: syne-tune tpe 3`."""
    executed = sum(len(group.executed) for group in groups)
    lines = []
    for mark in marked(flag for group in groups for flag in sorted(group.flags)):
        flag = mark.removeprefix("! ")
        frameworks = []  # and their samplers, where not all of them have it
        for label in dict.fromkeys(group.label for group in groups if group.flags[flag]):
            members = [group for group in groups if group.label == label and group.executed]
            samplers = list(dict.fromkeys(group.scope.sampler for group in members if group.flags[flag]))
            which = f" {'/'.join(samplers)}" if {*samplers} != {group.scope.sampler for group in members} else ""
            frameworks.append(f"{label}{which} {sum(group.flags[flag] for group in members)}")
        total = sum(group.flags[flag] for group in groups)
        lines.append(f"  {mark}: {total} of {counted(executed, 'run')}: {', '.join(frameworks)}")
    if not lines:
        return []
    first = lines[0].removeprefix("  ").removeprefix("! ").partition(":")[0]
    return ["Flags (serious: !):", *lines, f"What one means: {command('explain', first)}"]


def cost_notes(groups: Iterable[Group], headings: Mapping[str, str], circumstances: Circumstances) -> list[str]:
    """Return what the table of energy and cost cannot hold; `headings`: of its columns by metric."""
    charged = [group for group in groups if not group.twins and group.done]
    meanings = [f"{headings[metric]}: {text}" for metric, text in MEANINGS.items() if metric in headings]
    return [
        *([f"{'; '.join(meanings)}."] if meanings else []),
        *_kinds(charged, headings),
        *circumstances.meters,
        *circumstances.accounting,
        *_missing(charged, headings),
        *(warning.long for warning in several_kinds(charged, ENERGY)),
        *_waste(charged),
    ]


def _kinds(groups: Sequence[Group], headings: Mapping[str, str]) -> Iterator[str]:
    by_kind: dict[Kind, list[str]] = {kind: [] for kind in ORDER}
    for metric, heading in headings.items():
        for kind in {kind for group in groups for kind in group.estimate(metric).kinds}:
            by_kind[kind].append(heading)
    marks = {"estimated": f" ({ESTIMATED})"}
    parts = [f"{kind}{marks.get(kind, '')}: {', '.join(names)}" for kind, names in by_kind.items() if names]
    if parts:
        yield f"Kinds: {'; '.join(parts)}."


def _missing(groups: Sequence[Group], headings: Mapping[str, str]) -> Iterator[str]:
    """Yield one line per reason: the columns, and the rows where not all of them lack the figure."""
    by_reason: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for metric, heading in headings.items():
        lacking: dict[str, list[tuple[Group, int]]] = {}
        for group in groups:
            for reason, count in group.estimate(metric).lacking.items():
                lacking.setdefault(reason, []).append((group, count))
        for reason, those in lacking.items():
            are_all = len(those) == len(groups) and all(count == len(group.done) for group, count in those)
            sizes = [(name(group), f"{count} of {len(group.done)} runs", count < len(group.done)) for group, count in those]
            which = () if are_all else tuple(f"{who}, {some}" if is_part else who for who, some, is_part in sizes)
            by_reason.setdefault((reason, which), []).append(heading)
    for (reason, which), names in by_reason.items():
        yield f"{MISSING} {', '.join(names)}{f' ({listed(which)})' if which else ''}: {reason}."


def _waste(groups: Sequence[Group]) -> Iterator[str]:
    pruners = dict.fromkeys(group.scope.pruner for group in groups)
    if len(pruners) > 1:
        yield (
            f"Waste is not ranked across pruners ({', '.join(pruners)}): without one the default policy counts no waste; "
            "compare the total compute (CPU) and what pruning saved."
        )
    for group in groups:
        saved = []
        for estimate in map(group.estimate, SAVED if group.scope.pruner != "none" else ()):
            if estimate.middle is not None and math.isfinite(estimate.middle):
                unit, factor = shown_unit(estimate.unit)
                what = "epochs" if estimate.unit == "count" else unit
                saved.append(f"{ESTIMATED}{figure(estimate.middle * factor)} {what}")
        if saved:
            yield f"{name(group)}: pruning saved {', '.join(saved)} (estimated, medians)."


def _shared(by_label: Mapping[str, Iterable[str]]) -> list[str]:
    """Return one text: the one that all have, or each one with those who have it; none where nobody has one."""
    labels: dict[str, list[str]] = {}
    for label, texts in by_label.items():
        for text in dict.fromkeys(texts):
            labels.setdefault(text, []).append(label)
    if len(labels) < 2:
        return list(labels)
    return ["; ".join(f"{', '.join(names)}: {text}" for text, names in labels.items())]
