"""From the answers of a results folder to the choice that everything begins with."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

from tuneoff.base.clock import MILLISECONDS
from tuneoff.base.commands import command
from tuneoff.judge.answers.analysis_plan import frozen
from tuneoff.judge.answers.answer import Answers, Outcome, Question
from tuneoff.judge.choice.added import added, baseline_of
from tuneoff.judge.choice.choice import BestConfiguration, Certainty, Choice, Row, ScopeColumn, Setting, declared_seeds
from tuneoff.judge.choice.curve import curves, scaling_lines
from tuneoff.judge.choice.deciding import deciding
from tuneoff.judge.choice.evidence import PairEvidence
from tuneoff.judge.choice.filters import TRAINING, Filtered
from tuneoff.judge.choice.levels import level_lines, with_enough
from tuneoff.judge.choice.releases import release_curves, release_lines
from tuneoff.judge.choice.scores import score_lines
from tuneoff.judge.choice.sentences import length_table, sentences
from tuneoff.judge.choice.sharing import sharing_lines, with_sharing
from tuneoff.judge.groups import Group
from tuneoff.judge.results import POOL, Scope
from tuneoff.judge.stats.location import middle
from tuneoff.judge.warnings import results_warnings

BASELINE = "baseline"
TIME = "time"  # the question that ratios are of


def choose(answers: Answers, filters: Filtered | None = None, baseline: str | None = None) -> Choice:
    """Return the choice, with the setting first in which most frameworks were measured.

    `filters`: what left these answers. `baseline`: the label that ratios are against, where it was measured; None: the first.
    """
    names = _names(answers.groups)
    by_strategy: dict[tuple[str, str], list[Scope]] = {}
    for scope in answers.scopes:
        by_strategy.setdefault((scope.sampler, scope.pruner), []).append(scope)
    settings = [_setting(answers, scopes, names, filters is not None, baseline) for scopes in by_strategy.values()]
    measured = [setting for setting in settings if setting.rows]
    ordered = tuple(sorted(measured, key=lambda setting: -sum(row.is_candidate for row in setting.rows)))
    return Choice(
        answers=answers,
        name=answers.name,
        settings=ordered,
        warnings=results_warnings(answers, names),
        deciding=deciding(answers, ordered, baseline),
        best=_best(answers.groups),
        report_command=command("report", answers.results.folder),
        filters=tuple(filters.lines()) if filters is not None else (),
        refusal=filters.refusal if filters is not None else "",
    )


def _setting(
    answers: Answers, scopes: Sequence[Scope], names: Mapping[str, str], is_filtered: bool, baseline: str | None
) -> Setting:
    evidence = PairEvidence(answers, scopes)
    rows = _rows(evidence, names)
    labels = [row.label for row in rows if row.is_candidate and row.has_done]
    seeds = declared_seeds(row for row in rows if row.is_candidate)
    chosen, certainty = _chosen(evidence, labels) if seeds else ((), Certainty.NOTHING)
    reference = next((row.label for row in rows if row.label == baseline), None) or next(iter((*chosen, *labels)), None)
    of_choice = sentences(evidence, rows, chosen, certainty, seeds, is_filtered=is_filtered)
    specs = {group.scope: group.spec for group in answers.groups if group.scope in scopes}
    plan = frozen(answers.analysis)
    sharing = list(with_sharing(rows))
    scaling_curves = tuple(with_enough(curves(rows, sharing, specs), rows, plan))
    over_releases = tuple(release_curves(rows, plan))
    return Setting(
        sampler=scopes[0].sampler,
        pruner=scopes[0].pruner,
        scopes=tuple(scopes),
        rows=tuple(rows),
        chosen=chosen,
        certainty=certainty,
        reference=reference,
        lines=(
            next(of_choice),
            *scaling_lines(scaling_curves, rows),
            *level_lines(scaling_curves, rows),
            *sharing_lines(sharing, plan.margin_percent),
            *release_lines(over_releases),
            *score_lines(rows, reference, plan.weights),
            *of_choice,
        ),
        lengths=length_table([row for row in rows if row.has_done and not row.excluded]),
        curves=(*scaling_curves, *over_releases),
    )


def _rows(evidence: PairEvidence, names: Mapping[str, str]) -> list[Row]:
    """Return the rows in the order of their median job time in the first column that they have."""
    answers = evidence.answers
    time = time_question(answers)
    longest: dict[str, tuple[float, float]] = {}  # trial and job by label, in s
    for group in answers.groups:
        trial, job = longest.get(group.label, (0.0, 0.0))
        longest[group.label] = max(trial, _trial_seconds(group) or 0.0), max(job, _job_seconds(group, time) or 0.0)
    columns: dict[str, dict[str, ScopeColumn]] = {}
    for scope in evidence.scopes:
        groups = [
            group
            for group in answers.groups
            if group.scope == scope
            and group.replicate == 0
            and group.same_as is None
            and any(run.execution_id is not None for run in group.runs)
        ]
        ratios = evidence.ratios(time, scope, [group.label for group in groups]) if time is not None else {}
        for group in groups:
            columns.setdefault(group.label, {})[scope.text] = ScopeColumn(
                scope=scope,
                group=group,
                added=added(group, baseline_of(group, answers.groups), longest[group.label], answers.confidence),
                ratios=ratios.get(group.label, {}),
                trial_seconds=_trial_seconds(group),
                job_seconds=_job_seconds(group, time),
            )
    rows = [
        Row(
            label=label,
            name=names[label],
            is_floor=next(iter(by_scope.values())).group.adapter == POOL,
            excluded=next((flag for column in by_scope.values() if (flag := column.group.excluded)), ""),
            columns=by_scope,
        )
        for label, by_scope in columns.items()
    ]

    def order(row: Row) -> tuple[bool, float]:
        seconds = row.first.job_seconds
        return bool(row.excluded), math.inf if seconds is None else seconds

    return sorted(rows, key=order)


def _chosen(evidence: PairEvidence, labels: Sequence[str]) -> tuple[tuple[str, ...], Certainty]:
    """Return who is ahead of all others in some question and behind nobody in any; else those who are behind nobody."""
    if not labels:
        return (), Certainty.NOTHING
    outcomes = {
        (question.name, label, other): evidence.outcome(question, label, other)
        for question in evidence.answers.questions
        for label in labels
        for other in labels
        if label != other
    }
    if len(labels) > 1 and all(outcome is Outcome.NOT_JUDGED for outcome in outcomes.values()):
        return (), Certainty.DESCRIBED

    def has(outcome: Outcome, label: str, other: str) -> bool:
        return any(outcomes[question.name, label, other] is outcome for question in evidence.answers.questions)

    unbeaten = [label for label in labels if not any(has(Outcome.WORSE, label, other) for other in labels if other != label)]
    ahead = [label for label in unbeaten if all(has(Outcome.BETTER, label, other) for other in labels if other != label)]
    if len(labels) > 1 and len(ahead) == 1:
        return (ahead[0],), Certainty.SHOWN
    return tuple(unbeaten), Certainty.NOT_DECIDED


def time_question(answers: Answers) -> Question | None:
    """Return the question whose ratios are shown: that on time, or the first one on times."""
    named = [question for question in answers.questions if question.name == TIME]
    return next(iter([*named, *(question for question in answers.questions if question.metric.startswith("time."))]), None)


def _job_seconds(group: Group, time: Question | None) -> float | None:
    """Return the median job time; None where there is none, or most runs failed."""
    milliseconds = group.estimate(time.metric).middle if time is not None else None
    return None if milliseconds is None or math.isinf(milliseconds) else milliseconds / MILLISECONDS


def _trial_seconds(group: Group) -> float | None:
    milliseconds = group.estimate(TRAINING).present
    return middle(milliseconds) / MILLISECONDS if milliseconds else None


def _names(groups: Iterable[Group]) -> dict[str, str]:
    """Return each label's name: its framework's, with the label beside it where several labels share that."""
    names: dict[str, str] = {}
    for group in groups:
        if group.spec.adapter == POOL:
            names[group.label] = BASELINE
            continue
        records = (run.record for run in group.unskipped if run.record is not None)
        frameworks = (str(record.versions["framework"]) for record in records if record.versions.get("framework"))
        release = group.spec.environment.version if group.spec.environment is not None else None
        named = next((" ".join(filter(None, (framework, release))) for framework in frameworks), None)
        names[group.label] = named or names.get(group.label, group.label)
    shared = {name for name in names.values() if list(names.values()).count(name) > 1}
    return {label: f"{name} ({label})" if name in shared else name for label, name in names.items()}


def _best(groups: Iterable[Group]) -> BestConfiguration | None:
    """Return the best validated configuration of the runs that are done and in comparisons; None without one."""
    scored: list[tuple[float, BestConfiguration]] = []
    for group in groups:
        objective = group.spec.experiment.objective
        sign = 1 if objective.mode == "max" else -1
        for record in () if group.excluded else group.done.values():
            for trial in record.trials:
                if record.best is not None and trial.trial == record.best.core_trial and trial.value is not None:
                    best = BestConfiguration(
                        label=group.label,
                        run_id=record.run_id,
                        value=trial.value,
                        metric=objective.metric,
                        mode=objective.mode,
                        configuration=trial.configuration,
                    )
                    scored.append((sign * trial.value, best))
    return max(scored, key=lambda item: item[0])[1] if scored else None
