"""Answers made by hand for a results folder, so that the page is tested without the statistics."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Sequence
from itertools import combinations

from tuneoff.experiment.names import emulated_label, variant_text
from tuneoff.experiment.plan import PlannedRun
from tuneoff.judge.answers.answer import Answers, EstimatedGroup, Outcome, PairedDifference, Question, Sensitivity, Verdict
from tuneoff.judge.results import Results
from tuneoff.judge.runs import RunRef, Scope
from tuneoff.judge.stats.interval import Interval
from tuneoff.record.run_record import RunRecord
from tuneoff.tell.page.runs import run_status

QUALITY = Question(
    name="quality",
    metric="quality.test",
    unit="test_accuracy",
    better="max",
    scale="difference",
    margin=0.01,
    margin_text="0.01 (of the workload)",
)
TIME = Question(name="time", metric="time.jct", unit="ms", better="min", scale="ratio", margin=math.log(1.05), margin_text="5 %")


def made_answers(results: Results, questions: Sequence[Question] = (QUALITY, TIME)) -> Answers:
    """Return answers whose groups are those of the folder, and whose outcomes go by the estimate's place alone."""
    groups = list(_groups(results))
    verdicts = [
        verdict
        for question in questions
        for one, other in combinations(groups, 2)
        if one.scope == other.scope and not one.same_as and not other.same_as
        for verdict in [_verdict(question, one, other, results)]
    ]
    return Answers(
        name=results.plan.name,
        questions=tuple(questions),
        scopes=tuple(dict.fromkeys(group.scope for group in groups)),
        groups=tuple(groups),
        verdicts=tuple(verdicts),
        across=(),
        summary=("The first line of the answer.", "The second line of the answer."),
        limits=("Nothing is said of other workloads.",),
        statuses={},
        family_size=15,
        confidence=0.95,
        looks=(),
        analysis=results.plan.analysis,
    )


def _groups(results: Results) -> Iterator[EstimatedGroup]:
    runs: dict[tuple[str, Scope], list[PlannedRun]] = {}
    for run in results.planned:
        record = results.standing.get(run.run_id)
        emulated = run.emulated or (record is not None and record.emulated)
        experiment = run.spec.experiment
        variant = variant_text(experiment.variant)
        pruner = f" + {experiment.pruner.name}" if experiment.pruner.name != "none" else ""
        scope = Scope(
            sampler=experiment.sampler.name,
            pruner=experiment.pruner.name,
            variant=variant,
            task="",
            text=f"{experiment.sampler.name}{pruner} {variant}".rstrip(),
        )
        runs.setdefault((emulated_label(run.label, run.spec) if emulated else run.label, scope), []).append(run)
    for (label, scope), members in runs.items():
        same = all(run.same_as is not None for run in members)
        refs = tuple(_ref(run, results.standing.get(run.run_id)) for run in members)
        done = sum(ref.status == "done" for ref in refs)
        tried = sum(ref.status in ("done", "failed", "timeout") for ref in refs)
        yield EstimatedGroup(
            label=label,
            adapter=members[0].spec.adapter,
            scope=scope,
            emulated="@" in label,
            replicate=members[0].spec.replicate,
            runs=refs,
            success=Interval(estimate=done / tried, low=0.0, high=1.0, confidence=0.95, n=tried, method="made")
            if tried
            else None,
            estimates={},
            same_as="random" if same else None,
        )


def _ref(run: PlannedRun, record: RunRecord | None) -> RunRef:
    return RunRef(
        seed=run.spec.seed,
        run_id=run.run_id,
        execution_id=record.execution_id if record is not None else None,
        status=run_status(run, record),
        reason=record.reason if record is not None else run.skip_reason,
    )


def _verdict(question: Question, one: EstimatedGroup, other: EstimatedGroup, results: Results) -> Verdict:
    differences = []
    for first, second in zip(one.runs, other.runs, strict=False):
        values = [_value(results, ref, question.metric) for ref in (first, second)]
        difference = None
        if values[0] is not None and values[1] is not None:
            difference = math.log(values[0] / values[1]) if question.scale == "ratio" else values[0] - values[1]
        differences.append(
            PairedDifference(
                seed=first.seed,
                one=values[0],
                other=values[1],
                difference=difference,
                reason="made" if difference is None else None,
            )
        )
    found = [one.difference for one in differences if one.difference is not None]
    interval = None
    if found:
        middle = statistics.median(found)
        width = 2 * statistics.pstdev(found) / math.sqrt(len(found))
        interval = Interval(
            estimate=middle, low=middle - width, high=middle + width, confidence=0.95, n=len(found), method="made"
        )
    outcome = _outcome(question, interval)
    return Verdict(
        question=question,
        scope=one.scope,
        one=one.label,
        other=other.label,
        outcome=outcome,
        reason="there are fewer than 10 paired seeds" if outcome is Outcome.NOT_JUDGED else "by the place of the interval",
        interval=interval,
        differences=tuple(differences),
        noise_floor=_interval(0.0, -0.004, 0.005, 10),
        sensitivities=(Sensitivity(choice="median", outcome=outcome, interval=interval),) * 3
        + (Sensitivity(choice="without seed 3", outcome=Outcome.UNDECIDED, interval=interval),),
        seeds_to_decide=40 if outcome is Outcome.UNDECIDED else None,
        is_noise=one.adapter == other.adapter,
    )


def _interval(estimate: float, low: float, high: float, n: int) -> Interval:
    return Interval(estimate=estimate, low=low, high=high, confidence=0.95, n=n, method="made")


def _value(results: Results, ref: RunRef, metric: str) -> float | None:
    record = results.standing.get(ref.run_id)
    found = record.metrics.get(metric) if record is not None and ref.status == "done" else None
    return found.value if found is not None else None


def _outcome(question: Question, interval: Interval | None) -> Outcome:
    if interval is None or interval.n < 10:
        return Outcome.NOT_JUDGED
    margin = question.margin or 0.0
    if -margin < interval.low and interval.high < margin:
        return Outcome.EQUIVALENT if interval.low <= 0 <= interval.high else Outcome.EQUIVALENT_THOUGH_DIFFERENT
    if interval.low <= 0 <= interval.high:
        return Outcome.UNDECIDED
    return Outcome.BETTER if (interval.estimate > 0) == (question.better == "max") else Outcome.WORSE
