"""What cannot be concluded from a results folder, and why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from tuneoff.base.format import counted, listed
from tuneoff.experiment.names import training_name
from tuneoff.experiment.seeds import seeds_text
from tuneoff.judge.answers.analysis_plan import Frozen
from tuneoff.judge.answers.answer import Answers, EstimatedGroup, Outcome
from tuneoff.judge.answers.judging import FEWEST_SEEDS, pairs
from tuneoff.judge.answers.phrases import is_decided
from tuneoff.judge.answers.run_values import disturbance, why_unknown
from tuneoff.judge.results import Results
from tuneoff.judge.runs import POOL, Group, Scope
from tuneoff.measure.use import DISTURBED, LARGEST_SHARE
from tuneoff.record.flag_meanings import MACHINE
from tuneoff.record.run_record import FAILED
from tuneoff.record.store import is_final, repeat_number
from tuneoff.run.run_ends import UNFINISHED

_MOST_NAMED = 6


def limits(made: Answers, of_scope: Mapping[Scope, Sequence[Group]], results: Results, plan: Frozen) -> Iterator[str]:
    """Yield the limits, the gravest first."""
    every = [group for groups in of_scope.values() for group in groups]
    yield from _unfinished(made)
    yield from _family(made, of_scope)
    yield from _seeds(made)
    yield from added(results)
    yield from _families(made)
    yield from _failures(made)
    yield from _unlike_noise(made)
    yield from _energy(made)
    yield from _cpu_limits(made)
    yield from _emulated(every)
    yield from _pool(every)
    yield from _disturbed(every)
    yield from _flags(made)
    yield from failed_before(results, made.groups, {})
    yield from _skipped(made)
    yield from _repeated(results)
    yield from _machines(results)
    yield from _scope(made, every, plan)


def _unfinished(made: Answers) -> Iterator[str]:
    waiting = {status: made.statuses[status] for status in UNFINISHED if made.statuses.get(status)}
    if waiting:
        total = sum(made.statuses.values())
        parts = listed(f"{count} {status}" for status, count in waiting.items())
        yield f"The matrix is not finished: of {counted(total, 'planned run')} {parts}. Verdicts wait until all seeds have ended."


def _family(made: Answers, of_scope: Mapping[Scope, Sequence[Group]]) -> Iterator[str]:
    sizes = {scope.text: len(pairs(cells)) for scope, cells in of_scope.items()}
    larger = {text: size for text, size in sizes.items() if size > made.family_size}
    if larger:
        most = max(larger.values())
        yield (
            f"THE FAMILY IS TOO SMALL: analysis.family_size is {made.family_size}, but there are {most} pairs in "
            f"{listed(larger)}. Their own number is used instead, so there another framework changes verdicts; plan a larger one."
        )


def _seeds(made: Answers) -> Iterator[str]:
    planned = {len({run.seed for run in group.runs if not run.is_added}) for group in made.groups}
    if not planned:
        return
    few, many = min(planned), max(planned)
    text = counted(few, "seed") if few == many else f"{few} to {many} seeds"
    if many < FEWEST_SEEDS:
        yield f"{text[:1].upper()}{text[1:]}: too few for any verdict, which needs {FEWEST_SEEDS}; dots and intervals only."
    else:
        open_ones = sum(one.outcome is Outcome.UNDECIDED for one in made.verdicts if not one.is_noise)
        are = f"{counted(open_ones, 'verdict')} {'is' if open_ones == 1 else 'are'} undecided, which is not equivalent"
        more = f" {are}. More seeds are for a new experiment, never to be added to this one." if open_ones else ""
        yield f"{text[:1].upper()}{text[1:]} per group.{more}"


def _families(made: Answers) -> Iterator[str]:
    """Say how many false claims there may be over all families, where that is one or more."""
    families = {(one.scope, one.question.name) for one in made.verdicts if not one.is_noise and one.sensitivities}
    error = 1 - made.confidence
    if len(families) * error >= 1 - 1e-9:
        yield (
            f"Each question in each scope is a family of its own, with an error of {100 * error:.3g} %: of the {len(families)} "
            f"that are judged, up to {len(families) * error:.3g} on average hold a false claim by chance."
        )


def _failures(made: Answers) -> Iterator[str]:
    failed = {
        f"{group.label} {group.scope.text}": sum(run.is_failure for run in group.runs)
        for group in made.groups
        if any(run.is_failure for run in group.runs)
    }
    if failed:
        total = sum(failed.values())
        yield (
            f"{counted(total, 'run')} failed or timed out ({_some(failed)}): each counts as worse than any run that is done, "
            "and two of one seed as no difference."
        )
    for question in made.questions:
        reasons: Counter[str] = Counter()
        for group in made.groups:
            done = {run.seed for run in group.runs if run.status == "done"}
            estimate = group.estimates.get(question.metric)
            for value in estimate.values if estimate is not None else ():
                if value.value is None and value.seed in done and value.reason is not None:
                    reasons[value.reason] += 1
        if reasons:
            yield f"{question.metric} has no value in {counted(sum(reasons.values()), 'done run')}: {_some(reasons)}."


def _unlike_noise(made: Answers) -> Iterator[str]:
    for one in made.verdicts:
        if one.is_noise and is_decided(one):
            yield (
                f"{one.one} and {one.other} are the same and yet differ in {one.question.metric} ({one.scope.text}): what is as "
                "small as that between two frameworks means nothing."
            )
    if made.verdicts and not any(one.is_noise for one in made.verdicts):
        yield "No framework is named twice, so there is no noise floor: how far equal runs differ by chance was not measured."


def _energy(made: Answers) -> Iterator[str]:
    for question in made.questions:
        kinds = {
            kind
            for group in made.groups
            if not group.emulated
            for kind in (group.estimates[question.metric].kinds if question.metric in group.estimates else ())
        }
        if len(kinds) > 1:
            yield f"{question.metric} is {listed(sorted(kinds))}: values of different kinds are never compared."
        if "estimated" in kinds:
            ranges = {one.weights.text for one in made.verdicts if one.question.name == question.name and one.weights is not None}
            weights = (
                "; an order is claimed only if it holds for all weights (W per reserved core over J per CPU second) "
                f"from {listed(sorted(ranges))}"
                if ranges
                else ""
            )
            yield f"{question.metric} is estimated by a model, not measured{weights}."


def _cpu_limits(made: Answers) -> Iterator[str]:
    found: dict[Scope, set[str]] = {}
    for group in made.groups:
        if not group.emulated:
            found.setdefault(group.scope, set()).update(group.conditions.cpu_limits)
    differing = sorted({limit for limits in found.values() if len(limits) > 1 for limit in limits})
    if differing:
        yield f"The processors of slots were not limited alike ({'; '.join(differing)}): times may differ because of that."


def _emulated(cells: Sequence[Group]) -> Iterator[str]:
    labels = [cell.label for cell in cells if cell.emulated]
    if labels:
        yield f"{listed(labels)}: emulated, so shown and labelled, and in no verdict, ranking or noise floor."


def _pool(cells: Sequence[Group]) -> Iterator[str]:
    if any(cell.spec.adapter == POOL for cell in cells):
        yield f"{POOL} is no framework: a plain process pool, by which the others' overhead is seen."


def _disturbed(cells: Sequence[Group]) -> Iterator[str]:
    runs = [run for cell in cells if not cell.emulated for run in cell.runs]
    found = disturbance(runs)
    if found.disturbed:
        yield (
            f"Other programs used more than {LARGEST_SHARE:g} % of the processors in {len(found.disturbed)} of "
            f"{counted(len(found.runs), 'run')} (flag {DISTURBED}): their times are too long, and not by one factor for all "
            "frameworks, so differences and ratios may be wrong too."
        )
    if found.unknown:
        yield (
            f"In {len(found.unknown)} of {counted(len(found.runs), 'run')} it is not known what other programs used "
            f"({why_unknown(runs)}): no claim that needs them is called robust."
        )


def _flags(made: Answers) -> Iterator[str]:
    flagged: Counter[str] = Counter()
    runs = 0
    for group in made.groups:
        for run in group.runs:
            found = [flag for flag in run.flags if flag in MACHINE and flag != DISTURBED]
            flagged.update(found)
            runs += bool(found)
    if flagged:
        yield f"The machine was not in order in {counted(runs, 'run')} ({_some(flagged)}): their times may be too long."


def added(results: Results) -> Iterator[str]:
    """Say which seeds were added after the first run."""
    if seeds := results.plan.added_seeds:
        yield (
            f"Seeds added after the first run ({seeds_text(seeds)}): medians count them; verdicts and ratios rest on the seeds "
            "declared before it."
        )


def failed_before(results: Results, groups: Iterable[EstimatedGroup], names: Mapping[str, str]) -> Iterator[str]:
    """Say how many runs are done only because they were repeated for having failed, which no rule of the plan asks for."""
    failed = {record.run_id for record in results.records if record.status in FAILED and is_final(record)}
    runs = {(group.label, run.run_id): run.record for group in groups for run in group.own if run.is_done}
    again = Counter(
        names.get(label, label)
        for (label, run_id), record in runs.items()
        if run_id in failed and record is not None and not repeat_number(record)
    )
    if again:
        yield f"Failed runs were repeated until they were done ({_some(again)}): no figure and no verdict counts those failures."


def _skipped(made: Answers) -> Iterator[str]:
    reasons: dict[str, list[str]] = {}
    for group in made.groups:
        if group.same_as is None:
            for run in group.runs:
                if run.status == "skipped" and run.reason is not None:
                    reasons.setdefault(run.reason, []).append(group.label)
    for reason, labels in reasons.items():
        yield f"{counted(len(labels), 'run')} of {listed(labels)} skipped: {reason}."


def _repeated(results: Results) -> Iterator[str]:
    planned = {run.run_id for run in results.planned}
    stand = {record.execution_id for record in results.standing.values()}
    others = Counter(one.status for one in results.records if one.run_id in planned and one.execution_id not in stand)
    if count := others.total():
        statuses = listed(f"{number} {status}" for status, number in others.items())
        yield f"{counted(count, 'further execution')} of repeated runs ({statuses}): kept, and counted nowhere."


def _machines(results: Results) -> Iterator[str]:
    hosts = {str(record.environment.get("host")) for record in results.standing.values() if record.environment.get("host")}
    if len(hosts) == 1:
        yield "All runs are of one machine: on another the times and their ratios may be others."
    elif hosts:
        yield f"The runs are of {len(hosts)} machines: what differs between frameworks may differ because of that."


def _scope(made: Answers, every: Sequence[Group], plan: Frozen) -> Iterator[str]:
    workloads = list(dict.fromkeys(training_name(cell.spec.experiment.workload, made.name) for cell in every))
    tasks = list(dict.fromkeys(scope.task for scope in made.scopes if scope.task))
    if not workloads:
        return
    what = f"{counted(len(tasks), 'task')} of {listed(workloads)}" if tasks else f"workload {listed(workloads)}"
    budgets = sorted({cell.spec.experiment.budget.trials for cell in every})
    workers = sorted({cell.spec.experiment.workers.count for cell in every})
    yield (
        f"Measured on {what}, with {_range(budgets)} trials on {_range(workers)} workers; of other workloads, budgets and "
        "numbers of workers nothing is said."
    )
    if tasks and not plan.anchors:
        yield "The file has no anchors, so quality is not normalised and is not compared across tasks."


def _some(counts: Mapping[str, int]) -> str:
    items = sorted(counts.items(), key=lambda item: -item[1])
    text = "; ".join(f"{name}: {count}" for name, count in items[:_MOST_NAMED])
    return text if len(items) <= _MOST_NAMED else f"{text}; and {len(items) - _MOST_NAMED} more"


def _range(values: Sequence[int]) -> str:
    return str(values[0]) if len(values) == 1 else f"{values[0]} to {values[-1]}"
