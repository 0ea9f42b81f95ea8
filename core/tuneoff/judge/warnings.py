"""What weakens the answers of a results folder: each kind of warning is worded once, and raised where it is noticed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from tuneoff.base.commands import command
from tuneoff.base.format import counted, listed
from tuneoff.experiment.names import training_name
from tuneoff.experiment.seeds import seeds_text
from tuneoff.judge.answers.analysis_plan import frozen
from tuneoff.judge.answers.answer import Answers, Outcome
from tuneoff.judge.answers.judging import FEWEST_SEEDS, pairs
from tuneoff.judge.answers.phrases import is_decided
from tuneoff.judge.controls.compute import controls
from tuneoff.judge.groups import Group, by_scope
from tuneoff.judge.results import Results
from tuneoff.judge.run_values import disturbance, why_unknown
from tuneoff.judge.runs import POOL, Run, Scope
from tuneoff.measure.incumbent import NO_TEST
from tuneoff.measure.use import DISTURBED, LARGEST_SHARE
from tuneoff.record.flag_meanings import MACHINE, WRONG_RESULT
from tuneoff.record.run_record import FAILED
from tuneoff.record.store import is_final, repeat_number
from tuneoff.run.run_ends import UNFINISHED

WITHOUT_MODEL = "sampler_without_model"
_MOST_NAMED = 6
_CATALOGUE: Mapping[str, tuple[str, str, str]] = {  # by kind, the gravest first: short, long ("": as the short one) and way out
    "controls_differ": ("The same configurations or the same algorithm gave other results by framework", "", "{command}"),
    "unfinished": (
        "{waiting} of {runs} {have} not ended.",
        "The matrix is not finished: of {planned} {parts}. Verdicts wait until all seeds have ended.",
        "",
    ),
    "family_too_small": (
        "",
        "THE FAMILY IS TOO SMALL: analysis.family_size is {size}, but there are {most} pairs in {scopes}. "
        "Their own number is used instead, so there another framework changes verdicts; plan a larger one.",
        "",
    ),
    "too_few_seeds": ("", "{seeds}: too few for any verdict, which needs {fewest}; dots and intervals only.", ""),
    "seeds": ("", "{seeds} per group.", ""),
    "undecided": (
        "",
        "{seeds} per group. {verdicts} undecided, which is not equivalent. "
        "More seeds are for a new experiment, never to be added to this one.",
        "",
    ),
    "seeds_added": (
        "Seeds added after the first run ({seeds}): medians count them; verdicts and ratios rest on the seeds "
        "declared before it.",
        "",
        "",
    ),
    "several_families": (
        "",
        "Each question in each scope is a family of its own, with an error of {error:.3g} %: of the {count} "
        "that are judged, up to {false:.3g} on average hold a false claim by chance.",
        "",
    ),
    "disturbed": (
        "Other programs were busy in {count} of {runs}{unknown}: times are too long, differences and ratios may be wrong too.",
        f"Other programs used more than {LARGEST_SHARE:g} % of the processors in {{count}} of {{runs}} (flag {DISTURBED}): "
        "their times are too long, and not by one factor for all frameworks, so differences and ratios may be wrong too.",
        "{way_out}",
    ),
    "disturbance_unknown": (
        "Whether other programs were busy is unknown in {count} of {runs} ({why}): times may be too long.",
        "In {count} of {runs} it is not known what other programs used ({why}): no claim that needs them is called robust.",
        "",
    ),
    "wrong_result": ("{who}: {meaning}.", "", ""),
    "sampler_without_model": ("{who}: too few trials for the sampler's model, so this was random search.", "", ""),
    "no_test": ("Quality is of validation, which the choice of the best trial favours: {why}.", "", ""),
    "failures": (
        "Runs failed: {who}; a failed run counts as worse than any other.",
        "{runs} failed or timed out ({where}): each counts as worse than any run that is done, "
        "and two of one seed as no difference.",
        "",
    ),
    "failed_before": (
        "Failed runs were repeated until they were done ({who}): no figure and no verdict counts those failures.",
        "",
        "",
    ),
    "failed_trials": ("Trials failed: {who}; most often: {cause}.", "", ""),
    "emulated": (
        "{who} ran on an emulated platform: in no comparison.",
        "{labels}: emulated, so shown and labelled, and in no verdict, ranking or noise floor.",
        "",
    ),
    "estimated": (
        "Estimated by a model, not measured (~): {questions}.",
        "{metric} is estimated by a model, not measured{weights}.",
        "",
    ),
    "no_value": ("", "{metric} has no value in {runs}: {reasons}.", ""),
    "unlike_itself": (
        "",
        "{one} and {other} are the same and yet differ in {metric} ({scope}): what is as small as that between two frameworks "
        "means nothing.",
        "",
    ),
    "no_noise_floor": (
        "",
        "No framework is named twice, so there is no noise floor: how far equal runs differ by chance was not measured.",
        "",
    ),
    "several_kinds": ("", "{metric} is {kinds}: values of different kinds are never compared.", ""),
    "limited_differently": (
        "",
        "The processors of slots were not limited alike ({limits}): times may differ because of that.",
        "",
    ),
    "baseline": ("", f"{POOL} is no framework: a plain process pool, by which the others' overhead is seen.", ""),
    "machine": ("", "The machine was not in order in {runs} ({flags}): their times may be too long.", ""),
    "skipped": ("", "{runs} of {labels} skipped: {reason}.", ""),
    "repeated": ("", "{executions} of repeated runs ({statuses}): kept, and counted nowhere.", ""),
    "one_machine": ("", "All runs are of one machine: on another the times and their ratios may be others.", ""),
    "several_machines": (
        "",
        "The runs are of {count} machines: what differs between frameworks may differ because of that.",
        "",
    ),
    "measured_on": (
        "",
        "Measured on {what}, with {trials} trials on {workers} workers; of other workloads, budgets and numbers of workers "
        "nothing is said.",
        "",
    ),
    "no_anchors": ("", "The file has no anchors, so quality is not normalised and is not compared across tasks.", ""),
}
_WEIGHTS = "an order is claimed only if it holds for all weights (W per reserved core over J per CPU second) from"
_RANKS = {kind: rank for rank, kind in enumerate(_CATALOGUE)}


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultsWarning:
    """What weakens the answers. `rank`: of its kind, 0 is the gravest.

    `short`: for the first screen, "" where it could not change the choice; `long`: for the list of what cannot be concluded.
    `way_out`: the command that helps, "" for none. `runs`: the ids of those that it is of; none: it is of all of them.
    """

    rank: int
    kind: str
    short: str
    long: str
    way_out: str = ""
    runs: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The short one with the way out."""
        return f"{self.short}{' ' if self.short.endswith('.') else ': '}{self.way_out}" if self.way_out else self.short


def results_warnings(results: Results, answers: Answers, names: Mapping[str, str]) -> tuple[ResultsWarning, ...]:
    """Return the warnings of a folder, the gravest first; `names`: of the frameworks, by label."""
    found = [
        *_of_matrix(results, answers),
        *_of_verdicts(answers),
        *_of_runs(results, answers.groups, names, is_over=not any(answers.statuses.get(status) for status in UNFINISHED)),
        *_of_figures(answers),
    ]
    return tuple(sorted(found, key=lambda one: one.rank))


def _warning(kind: str, of: Iterable[Run] = (), /, *, is_short: bool = True, **facts: object) -> ResultsWarning:
    """Return a warning with these facts in its texts; `is_short`: False where another one of its kind speaks for it."""
    short, long, way_out = (text.format(**facts) for text in _CATALOGUE[kind])
    return ResultsWarning(
        rank=_RANKS[kind],
        kind=kind,
        short=short if is_short else "",
        long=long or (short if not way_out else f"{short}: {way_out}"),
        way_out=way_out,
        runs=tuple(dict.fromkeys(run.run_id for run in of)),
    )


def _of_matrix(results: Results, answers: Answers) -> Iterator[ResultsWarning]:
    """Yield what follows from the plan, and from what became of it."""
    if controls(results).contradicts:
        yield _warning("controls_differ", command=command("controls", results.folder))
    every = [run for group in answers.groups for run in group.runs]
    if waiting := {status: answers.statuses[status] for status in UNFINISHED if answers.statuses.get(status)}:
        count, total = sum(waiting.values()), sum(answers.statuses.values())
        yield _warning(
            "unfinished",
            (run for run in every if run.status in UNFINISHED),
            waiting=count,
            runs=counted(total, "run"),
            planned=counted(total, "planned run"),
            have="has" if count == 1 else "have",
            parts=listed(f"{number} {status}" for status, number in waiting.items()),
        )
    if seeds := results.plan.added_seeds:
        yield _warning("seeds_added", (run for run in every if run.is_added), seeds=seeds_text(seeds))
    planned = {run.run_id for run in results.planned}
    standing = results.standing.values()
    stand = {record.execution_id for record in standing}
    others = Counter(one.status for one in results.records if one.run_id in planned and one.execution_id not in stand)
    if count := others.total():
        statuses = listed(f"{number} {status}" for status, number in others.items())
        yield _warning("repeated", executions=counted(count, "further execution"), statuses=statuses)
    hosts = {str(record.environment.get("host")) for record in standing if record.environment.get("host")}
    if hosts:
        yield _warning("one_machine" if len(hosts) == 1 else "several_machines", count=len(hosts))
    experiments = [group.spec.experiment for group in answers.groups]
    workloads = listed(dict.fromkeys(training_name(one.workload, answers.name) for one in experiments))
    tasks = {scope.task for scope in answers.scopes if scope.task}
    if experiments:
        yield _warning(
            "measured_on",
            what=f"{counted(len(tasks), 'task')} of {workloads}" if tasks else f"workload {workloads}",
            trials=_range(one.budget.trials for one in experiments),
            workers=_range(one.workers.count for one in experiments),
        )
        if tasks and not frozen(results.plan.analysis).anchors:
            yield _warning("no_anchors")


def _of_verdicts(answers: Answers) -> Iterator[ResultsWarning]:
    """Yield what follows from the number of seeds, of pairs and of verdicts."""
    sizes = {scope.text: len(pairs(groups)) for scope, groups in by_scope(answers.groups).items()}
    if larger := {text: size for text, size in sizes.items() if size > answers.family_size}:
        yield _warning("family_too_small", size=answers.family_size, most=max(larger.values()), scopes=listed(larger))
    numbers = {len({run.seed for run in group.runs if not run.is_added}) for group in answers.groups}
    verdicts = [one for one in answers.verdicts if not one.is_noise]
    if numbers:
        few, many = min(numbers), max(numbers)
        seeds = counted(few, "seed") if few == many else f"{few} to {many} seeds"
        undecided = sum(one.outcome is Outcome.UNDECIDED for one in verdicts)
        yield _warning(
            "too_few_seeds" if many < FEWEST_SEEDS else "undecided" if undecided else "seeds",
            seeds=f"{seeds[:1].upper()}{seeds[1:]}",
            fewest=FEWEST_SEEDS,
            verdicts=f"{counted(undecided, 'verdict')} {'is' if undecided == 1 else 'are'}",
        )
    families, error = {(one.scope, one.question.name) for one in verdicts if one.sensitivities}, 1 - answers.confidence
    if len(families) * error >= 1 - 1e-9:
        yield _warning("several_families", error=100 * error, count=len(families), false=len(families) * error)
    for one in answers.verdicts:
        if one.is_noise and is_decided(one):
            yield _warning("unlike_itself", one=one.one, other=one.other, metric=one.question.metric, scope=one.scope.text)
    if answers.verdicts and len(verdicts) == len(answers.verdicts):
        yield _warning("no_noise_floor")


def _of_runs(results: Results, groups: Sequence[Group], names: Mapping[str, str], *, is_over: bool) -> Iterator[ResultsWarning]:
    """Yield what became of runs and what disturbed them; `is_over`: all have ended, so that some can be repeated."""
    own = [group for group in groups if group.same_as is None]
    tried = [run for group in own if not group.emulated for run in group.runs]
    found = disturbance(tried)
    runs = counted(len(found.runs), "run")
    if found.disturbed:
        repeat = f"To repeat their seeds: {results.plan.resume_command(results.folder, '--retry', 'flagged')}"
        yield _warning(
            "disturbed",
            (run for run in tried if run.execution_id in found.disturbed),
            count=len(found.disturbed),
            runs=runs,
            unknown=f", and it is unknown in {len(found.unknown)}" if found.unknown else "",
            way_out=repeat if is_over else "",
        )
    if found.unknown:
        yield _warning(
            "disturbance_unknown",
            (run for run in tried if run.execution_id in found.unknown),
            is_short=not found.disturbed,
            count=len(found.unknown),
            runs=runs,
            why=why_unknown(tried),
        )
    for flag, meaning in {**WRONG_RESULT, WITHOUT_MODEL: ""}.items():
        if who := _flagged(own, names, flag):
            flagged = [run for group in own for run in group.runs if flag in run.flags]
            yield _warning("wrong_result" if meaning else flag, flagged, who=who, meaning=meaning)
    machine = Counter(flag for group in groups for run in group.runs for flag in run.flags if _is_of_machine(flag))
    if machine:
        of_machine = [run for group in groups for run in group.runs if any(map(_is_of_machine, run.flags))]
        yield _warning("machine", of_machine, runs=counted(len(of_machine), "run"), flags=_some(machine))
    failed = [(group, those) for group in own if (those := [run for run in group.runs if run.is_failure])]
    if failed:
        of_failed = [run for _, those in failed for run in those]
        yield _warning(
            "failures",
            of_failed,
            who=listed(f"{len(those)} of {names[group.label]}" for group, those in failed),
            runs=counted(len(of_failed), "run"),
            where=_some({f"{group.label} {group.scope.text}": len(those) for group, those in failed}),
        )
    tried_before = {record.run_id for record in results.records if record.status in FAILED and is_final(record)}
    again = [
        (group, run)
        for group in groups
        for run in group.own
        if run.run_id in tried_before and run.record is not None and run.is_done and not repeat_number(run.record)
    ]
    if again:
        who = _some(Counter(names[group.label] for group, _ in again))
        yield _warning("failed_before", (run for _, run in again), who=who)
    trials = [
        (names[group.label], run, trial)
        for group in own
        for run in group.runs
        if run.record is not None and run.status == "done"
        for trial in run.record.trials
    ]
    if lost := [(name, run, trial) for name, run, trial in trials if trial.state == "failed"]:
        every, failing = (Counter(name for name, _, _ in some) for some in (trials, lost))
        yield _warning(
            "failed_trials",
            (run for _, run, _ in lost),
            who=listed(f"{count} of {every[name]} of {name}" for name, count in failing.items()),
            cause=Counter(trial.cause for _, _, trial in lost).most_common(1)[0][0],
        )
    if emulated := [group for group in groups if group.emulated]:
        yield _warning(
            "emulated",
            (run for group in emulated for run in group.runs),
            who=listed(dict.fromkeys(names[group.label] for group in emulated if group.same_as is None)),
            labels=listed(group.label for group in emulated),
        )
    if any(group.adapter == POOL for group in groups):
        yield _warning("baseline")
    skipped: dict[str, list[tuple[str, Run]]] = {}
    for group in own:
        for run in group.runs:
            if run.is_skipped and run.reason is not None:
                skipped.setdefault(run.reason, []).append((group.label, run))
    for reason, of_reason in skipped.items():
        labels = listed(label for label, _ in of_reason)
        runs = counted(len(of_reason), "run")
        yield _warning("skipped", (run for _, run in of_reason), runs=runs, labels=labels, reason=reason)


def _of_figures(answers: Answers) -> Iterator[ResultsWarning]:
    """Yield what figures are made of: kinds of values, missing ones, limits of processors."""
    without_test = [group for group in answers.groups if NO_TEST in group.estimate("quality.test").reasons]
    if without_test:
        yield _warning("no_test", (run for group in without_test for run in group.runs), why=NO_TEST)
    estimated = [one for one in answers.questions if any(group.estimate(one.metric).is_estimated for group in answers.groups)]
    for question in answers.questions:
        metric = question.metric
        lacking = [
            (run, value.reason)
            for group in answers.groups
            for run, value in zip(group.runs, group.estimate(metric).values, strict=True)
            if run.status == "done" and value.reason is not None
        ]
        if lacking:
            reasons = _some(Counter(reason for _, reason in lacking))
            yield _warning(
                "no_value", (run for run, _ in lacking), metric=metric, runs=counted(len(lacking), "done run"), reasons=reasons
            )
        kinds = {kind for group in answers.groups if not group.emulated for kind in group.estimate(metric).kinds}
        if len(kinds) > 1:
            yield _warning("several_kinds", metric=metric, kinds=listed(sorted(kinds)))
        if question in estimated:
            ranges = {one.weights.text for one in answers.verdicts if one.question.metric == metric and one.weights is not None}
            over = f"; {_WEIGHTS} {listed(sorted(ranges))}" if ranges else ""
            yield _warning(
                "estimated",
                is_short=question is estimated[0],
                questions=listed(one.name for one in estimated),
                metric=metric,
                weights=over,
            )
    limits: dict[Scope, set[str]] = {}
    for group in answers.groups:
        if not group.emulated:
            limits.setdefault(group.scope, set()).update(group.conditions.cpu_limits)
    if differing := sorted({limit for of in limits.values() if len(of) > 1 for limit in of}):
        yield _warning("limited_differently", limits="; ".join(differing))


def _flagged(groups: Sequence[Group], names: Mapping[str, str], flag: str) -> str:
    """Return who has a flag in how many runs: `Optuna, tpe, 10 of 10 runs`; "" for nobody."""
    flagged: dict[str, list[tuple[str, int, int]]] = {}
    for group in groups:
        ended = [run for run in group.runs if run.execution_id is not None]
        if count := sum(flag in run.flags for run in ended):
            flagged.setdefault(group.label, []).append((group.scope.text, count, len(ended)))
    found = []
    for label, scopes in flagged.items():
        (text, count, runs), *others = scopes
        where = f"{text}, {count} of {counted(runs, 'run')}" if not others else f"in {counted(len(scopes), 'setting')}"
        found.append(f"{names[label]}, {where}")
    return "; ".join(found)


def _is_of_machine(flag: str) -> bool:
    return flag in MACHINE and flag != DISTURBED


def _some(counts: Mapping[str, int]) -> str:
    """Return the most frequent of some names with their counts."""
    items = sorted(counts.items(), key=lambda item: -item[1])
    text = "; ".join(f"{name}: {count}" for name, count in items[:_MOST_NAMED])
    return text if len(items) <= _MOST_NAMED else f"{text}; and {len(items) - _MOST_NAMED} more"


def _range(values: Iterable[int]) -> str:
    known = sorted({*values})
    return str(known[0]) if len(known) == 1 else f"{known[0]} to {known[-1]}"
