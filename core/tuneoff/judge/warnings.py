"""What weakens the answers of a results folder: each kind of warning is worded once, in warnings.toml, and raised here."""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.resources import files
from typing import Any

from tuneoff.base.commands import command
from tuneoff.base.format import counted, counted_range, listed
from tuneoff.base.packages import COMMON_PACKAGES
from tuneoff.experiment.names import training_name
from tuneoff.experiment.seeds import seeds_text
from tuneoff.judge.answers.analysis_plan import frozen
from tuneoff.judge.answers.answer import Answers, Outcome
from tuneoff.judge.answers.judging import FEWEST_SEEDS, pairs
from tuneoff.judge.answers.phrases import is_decided
from tuneoff.judge.controls.compute import controls
from tuneoff.judge.groups import Group, by_scope
from tuneoff.judge.results import POOL, Run, Scope, disturbance, value
from tuneoff.measure.incumbent import NO_TEST
from tuneoff.measure.progress import has_progress
from tuneoff.measure.use import DISTURBED, LARGEST_SHARE, SHARE
from tuneoff.record.flag_meanings import MACHINE, WRONG_RESULT
from tuneoff.record.metric_value import Kind
from tuneoff.record.run_record import FAILED
from tuneoff.record.store import is_final, repeat_number
from tuneoff.run.run_ends import UNFINISHED

WITHOUT_MODEL, STOPPED_BY_CORE = "sampler_without_model", "stopped_by_core"
_MOST_NAMED = 6
_CATALOGUE: Mapping[str, Mapping[str, str]] = tomllib.loads(files("tuneoff.judge").joinpath("warnings.toml").read_text("utf-8"))
_WEIGHTS = "an order is claimed only if it holds for all weights (W per reserved core over J per CPU second) from"


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


def results_warnings(answers: Answers, names: Mapping[str, str]) -> tuple[ResultsWarning, ...]:
    """Return the warnings of a folder, the gravest first; `names`: of the frameworks, by label."""
    raised = [
        *_matrix_warnings(answers),
        *_verdict_warnings(answers),
        *_run_warnings(answers, names),
        *_figure_warnings(answers),
    ]
    return tuple(sorted(raised, key=lambda warning: warning.rank))


def _warning(kind: str, of: Iterable[Run] = (), /, *, is_short: bool = True, **facts: object) -> ResultsWarning:
    """Return a warning with these facts in its texts, also the number of its runs; not `is_short`: another one speaks for it."""
    runs = tuple(dict.fromkeys(run.run_id for run in of))
    facts.setdefault("runs", counted(len(runs), "run"))
    texts = {name: text.format(**facts) for name, text in _CATALOGUE[kind].items()}
    warning = ResultsWarning(
        rank=list(_CATALOGUE).index(kind),
        kind=kind,
        short=texts.get("short", ""),
        long=texts.get("long", ""),
        way_out=texts.get("way_out", ""),
        runs=runs,
    )
    return replace(warning, long=warning.long or warning.text, short=warning.short if is_short else "")


def _matrix_warnings(answers: Answers) -> Iterator[ResultsWarning]:
    """Yield what follows from the plan, and from what became of it."""
    results = answers.results
    if controls(results).contradicts:
        yield _warning("controls_differ", command=command("check", "--controls", results.folder))
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
    selected = results.selected.values()
    selected_ids = {record.execution_id for record in selected}
    others = Counter(
        execution.status
        for execution in results.records
        if execution.run_id in planned and execution.execution_id not in selected_ids
    )
    if count := others.total():
        statuses = listed(f"{number} {status}" for status, number in others.items())
        yield _warning("repeated", executions=counted(count, "further execution"), statuses=statuses)
    hosts = {str(record.environment.get("host")) for record in selected if record.environment.get("host")}
    if hosts:
        yield _warning("one_machine" if len(hosts) == 1 else "several_machines", count=len(hosts))
    if differing := installed_differently(answers.groups):
        yield _warning("installed_differently", packages="; ".join(differing))
    experiments = [group.spec.experiment for group in answers.groups]
    workloads = listed(dict.fromkeys(training_name(experiment.workload, answers.name) for experiment in experiments))
    tasks = {scope.task for scope in answers.scopes if scope.task}
    if experiments:
        yield _warning(
            "measured_on",
            what=f"{counted(len(tasks), 'task')} of {workloads}" if tasks else f"workload {workloads}",
            trials=("at most " if any(experiment.objective.stop for experiment in experiments) else "")
            + counted_range((experiment.budget.trials for experiment in experiments), "trial"),
            workers=counted_range((experiment.workers.count for experiment in experiments), "worker"),
        )
        if tasks and not frozen(results.plan.analysis).anchors:
            yield _warning("no_anchors")


def _verdict_warnings(answers: Answers) -> Iterator[ResultsWarning]:
    """Yield what follows from the number of seeds, of pairs and of verdicts."""
    sizes = {scope.text: len(pairs(groups)) for scope, groups in by_scope(answers.groups).items()}
    if larger := {text: size for text, size in sizes.items() if size > answers.family_size}:
        yield _warning("family_too_small", size=answers.family_size, most=max(larger.values()), scopes=listed(larger))
    numbers = {len({run.seed for run in group.runs if not run.is_added}) for group in answers.groups}
    verdicts = [verdict for verdict in answers.verdicts if not verdict.is_noise]
    if numbers:
        seeds = counted_range(numbers, "seed")
        undecided = sum(verdict.outcome is Outcome.UNDECIDED for verdict in verdicts)
        yield _warning(
            "too_few_seeds" if max(numbers) < FEWEST_SEEDS else "undecided" if undecided else "seeds",
            seeds=seeds,
            fewest=FEWEST_SEEDS,
            verdicts=f"{counted(undecided, 'verdict')} {'is' if undecided == 1 else 'are'}",
        )
    families, error = (
        {(verdict.scope, verdict.question.name) for verdict in verdicts if verdict.sensitivities},
        1 - answers.confidence,
    )
    if len(families) * error >= 1 - 1e-9:
        yield _warning("several_families", error=100 * error, count=len(families), false=len(families) * error)
    for verdict in answers.verdicts:
        if verdict.is_noise and is_decided(verdict):
            yield _warning(
                "unlike_itself", one=verdict.one, other=verdict.other, metric=verdict.question.metric, scope=verdict.scope.text
            )
    if answers.verdicts and len(verdicts) == len(answers.verdicts):
        yield _warning("no_noise_floor")


def _run_warnings(answers: Answers, names: Mapping[str, str]) -> Iterator[ResultsWarning]:
    """Yield what became of runs and what disturbed them; once all have ended some can be repeated."""
    by_environment: dict[bool, dict[str, None]] = {}
    for group in answers.groups:
        if group.done and not group.excluded:
            by_environment.setdefault(group.spec.environment is not None, {})[names.get(group.label, group.label)] = None
    if len(by_environment) > 1:
        yield _warning("environments_differ", apart=listed(by_environment[True]), shared=listed(by_environment[False]))
    results, is_over = answers.results, not any(answers.statuses.get(status) for status in UNFINISHED)
    distinct = [group for group in answers.groups if group.same_as is None]
    every = [(group, run) for group in distinct for run in group.runs]
    tried = [run for group, run in every if not group.excluded]
    disturbances = disturbance(tried)
    of: dict[str, Any] = {"runs": counted(len(disturbances.runs), "run"), "share": LARGEST_SHARE, "flag": DISTURBED}
    if disturbances.disturbed:
        repeat = f"To repeat their seeds: {results.plan.resume_command(results.folder, '--retry', 'flagged')}"
        unknown = f", and it is unknown in {len(disturbances.unknown)}" if disturbances.unknown else ""
        runs = [run for run in tried if run.execution_id in disturbances.disturbed]
        way_out = repeat if is_over else ""
        yield _warning("disturbed", runs, count=len(disturbances.disturbed), unknown=unknown, way_out=way_out, **of)
    if disturbances.unknown:
        runs = [run for run in tried if run.execution_id in disturbances.unknown]
        is_short = not disturbances.disturbed
        shares = {run.execution_id: run.metric(SHARE) for run in runs}  # by execution: several runs may have the same
        why = Counter((share.reason_if_null if share is not None else None) or "no sample tells" for share in shares.values())
        reason, count = why.most_common(1)[0][0], len(disturbances.unknown)
        yield _warning("disturbance_unknown", runs, is_short=is_short, count=count, why=reason, **of)
    for flag, meaning in {**WRONG_RESULT, WITHOUT_MODEL: "", STOPPED_BY_CORE: ""}.items():
        if who := _flagged(distinct, names, flag):
            runs = [run for _, run in every if flag in run.flags]
            yield _warning("wrong_result" if meaning else flag, runs, who=who, meaning=meaning)
    still = [
        (group, run)
        for group, run in every
        if run.record is not None and run.is_done and not group.excluded
        if (run.record.environment.get("workload") or {}).get("training_algorithm") != "none"  # `null` has no progress to make
        if has_progress(run.record.trials, run.record.run_spec().experiment.objective) is False
    ]
    if still:
        metrics = listed(dict.fromkeys(group.spec.experiment.objective.metric for group, _ in still))
        who = _most_frequent(names[group.label] for group, _ in still)
        yield _warning("no_progress", (run for _, run in still), who=who, metrics=metrics)
    stopping = [run for group, run in every if run.is_done and group.spec.experiment.objective.stop]
    if unmet := [run for run in stopping if value(run, "goal.seconds").value is None]:
        yield _warning("goal_not_met", unmet, count=len(unmet), runs=counted(len(stopping), "run"))
    of_machine = [(run, flag) for _, run in every for flag in run.flags if flag in MACHINE and flag != DISTURBED]
    if of_machine:
        runs = list({run.run_id: run for run, _ in of_machine}.values())
        flags = _most_frequent(flag for _, flag in of_machine)
        yield _warning("machine", runs, flags=flags)
    if failed := [(group, run) for group, run in every if run.is_failure]:
        yield _warning(
            "failures",
            (run for _, run in failed),
            who=listed(f"{count} of {name}" for name, count in Counter(names[group.label] for group, _ in failed).items()),
            where=_most_frequent(f"{group.label} {group.scope.text}" for group, _ in failed),
        )
    failed_before = {record.run_id for record in results.records if record.status in FAILED and is_final(record)}
    again = [
        (group, run)
        for group, run in every
        if run.run_id in failed_before and run.record is not None and run.is_done and not repeat_number(run.record)
    ]
    if again:
        who = _most_frequent(names[group.label] for group, _ in again)
        yield _warning("failed_before", (run for _, run in again), who=who)
    done = [(names[group.label], run, run.record) for group, run in every if run.record is not None and run.is_done]
    trials = Counter(name for name, _, record in done for _ in record.trials)
    lost = [(name, run, trial) for name, run, record in done for trial in record.trials if trial.state == "failed"]
    if lost:
        failing = Counter(name for name, _, _ in lost)
        who = listed(f"{count} of {trials[name]} of {name}" for name, count in failing.items())
        cause = Counter(trial.cause for _, _, trial in lost).most_common(1)[0][0]
        yield _warning("failed_trials", (run for _, run, _ in lost), who=who, cause=cause)
    yield from excluded(answers.groups, names)
    if any(group.adapter == POOL for group in answers.groups):
        yield _warning("baseline", pool=POOL)
    skipped = [(group.label, run) for group, run in every if run.is_skipped]
    for reason in dict.fromkeys(run.reason for _, run in skipped if run.reason is not None):
        of_reason = [(label, run) for label, run in skipped if run.reason == reason]
        labels = listed(label for label, _ in of_reason)
        runs = [run for _, run in of_reason]
        yield _warning("skipped", runs, labels=labels, reason=reason)


def _figure_warnings(answers: Answers) -> Iterator[ResultsWarning]:
    """Yield what figures are made of: kinds of values, missing ones, limits of processors."""
    without_test = [group for group in answers.groups if NO_TEST in group.estimate("quality.test").reasons]
    if without_test:
        yield _warning("no_test", (run for group in without_test for run in group.runs), why=NO_TEST)
    estimated = [
        question
        for question in answers.questions
        if any(group.estimate(question.metric).is_estimated for group in answers.groups)
    ]
    for question in answers.questions:
        metric = question.metric
        lacking = [
            (run, reason)
            for group in answers.groups
            for run in group.runs
            if run.status == "done" and (reason := group.estimate(metric).values[run.seed].reason_if_null) is not None
        ]
        if lacking:
            reasons = _most_frequent(reason for _, reason in lacking)
            yield _warning(
                "no_value", (run for run, _ in lacking), metric=metric, runs=counted(len(lacking), "done run"), reasons=reasons
            )
        yield from several_kinds([group for group in answers.groups if not group.excluded], metric)
        if question in estimated:
            ranges = {
                verdict.weights.text
                for verdict in answers.verdicts
                if verdict.question.metric == metric and verdict.weights is not None
            }
            over = f"; {_WEIGHTS} {listed(sorted(ranges))}" if ranges else ""
            yield _warning(
                "estimated",
                is_short=question is estimated[0],
                questions=listed(other.name for other in estimated),
                metric=metric,
                weights=over,
            )
    limits: dict[Scope, set[str]] = {}
    for group in answers.groups:
        if not group.excluded:
            limits.setdefault(group.scope, set()).update(group.conditions.cpu_limits)
    if differing := sorted({limit for of in limits.values() if len(of) > 1 for limit in of}):
        yield _warning("limited_differently", limits="; ".join(differing))


def installed_differently(groups: Iterable[Group]) -> list[str]:
    """Return each package that training may use, and Python, of which compared runs had several versions, with who had which."""
    by_name: dict[str, dict[str, dict[str, None]]] = {}
    for group in groups:
        for record in () if group.excluded else group.done.values():
            versions = record.environment.get("versions")
            facts = {"Python": record.environment.get("python"), **(versions if isinstance(versions, Mapping) else {})}
            for name in ("Python", *COMMON_PACKAGES):
                if isinstance(version := facts.get(name), str):
                    by_name.setdefault(name, {}).setdefault(version, {})[group.label] = None
    return [
        f"{name} {listed(f'{version} ({listed(labels)})' for version, labels in versions.items())}"
        for name, versions in by_name.items()
        if len(versions) > 1
    ]


def excluded(groups: Iterable[Group], names: Mapping[str, str] | None = None) -> Iterator[ResultsWarning]:
    """Yield whom a flag keeps out of every comparison; `names`: of the frameworks, by label."""
    kept_out = [group for group in groups if group.excluded]
    if kept_out:
        who = listed(dict.fromkeys((names or {}).get(group.label, group.label) for group in kept_out))
        flags = listed(dict.fromkeys(group.excluded for group in kept_out))
        runs = (run for group in kept_out for run in group.runs)
        yield _warning("excluded", runs, who=who, flags=flags, labels=listed(group.label for group in kept_out))


def several_kinds(groups: Iterable[Group], metric: str) -> Iterator[ResultsWarning]:
    """Yield that values are of different kinds: of several groups, or of the seeds of one, whose median then mixes them."""
    kinds: dict[frozenset[Kind], list[str]] = {}
    for group in groups:
        if of_group := group.estimate(metric).kinds:
            kinds.setdefault(of_group, []).append(f"{group.label} {group.scope.text}")
    if len(frozenset[Kind]().union(*kinds)) > 1:
        texts = (f"{' and '.join(sorted(of_group))} ({listed(who)})" for of_group, who in kinds.items())
        yield _warning("several_kinds", metric=metric, kinds=listed(texts))


def _flagged(groups: Sequence[Group], names: Mapping[str, str], flag: str) -> str:
    """Return who has a flag in how many runs: `Optuna, tpe, 10 of 10 runs`; "" for none."""
    flagged: dict[str, list[tuple[str, int, int]]] = {}
    for group in groups:
        ended = [run for run in group.runs if run.execution_id is not None]
        if count := sum(flag in run.flags for run in ended):
            flagged.setdefault(group.label, []).append((group.scope.text, count, len(ended)))
    texts = []
    for label, scopes in flagged.items():
        (text, count, runs), *others = scopes
        where = f"{text}, {count} of {counted(runs, 'run')}" if not others else f"in {counted(len(scopes), 'setting')}"
        texts.append(f"{names[label]}, {where}")
    return "; ".join(texts)


def _most_frequent(names: Iterable[str]) -> str:
    """Return the most frequent of some names with their counts."""
    counts = Counter(names)
    text = "; ".join(f"{name}: {count}" for name, count in counts.most_common(_MOST_NAMED))
    return text if len(counts) <= _MOST_NAMED else f"{text}; and {len(counts) - _MOST_NAMED} more"
