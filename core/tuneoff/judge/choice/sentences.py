"""The choice in words: the headline, how sure it is, what was not shown, and from which length of trials on it matters little.

Who was shown to be better than whom is by the verdicts or by the claims over tasks, question by question.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import reduce
from operator import attrgetter, or_
from typing import NamedTuple

from tuneoff.base.format import counted, duration_range, listed
from tuneoff.experiment.names import with_pruner
from tuneoff.experiment.strategies import LISTED
from tuneoff.judge.answers.answer import ROBUST, Answers, Outcome, Question
from tuneoff.judge.answers.run_values import FEWEST_UNDISTURBED, disturbance
from tuneoff.judge.choice.added import Length, covering
from tuneoff.judge.choice.choice import Certainty, Ratio, Row, declared_seeds, failures, ratio_text
from tuneoff.judge.choice.shown import Shown

FEW = "few undisturbed runs"
NO_BASELINE = "no baseline (serial) ran on its platform with its kind of start"
SHRINKING = ("time", "overhead", "energy", "carbon", "cost", "waste")  # kinds of metrics that matter less, the longer trials are
MOST_PLACES = 3  # tasks that are named as those in which runs failed
_DID = {  # what the better one did, by question or its metric
    "quality": "found better models than",
    "time": "was faster than",
    "overhead.per_trial": "had less overhead in all (overhead.per_trial) than",  # not what a table calls added
    "energy": "needed less energy than",
    "cost": "cost less than",
}
_NOUNS = {"quality": "quality of the best model", "time": "job time", "overhead.per_trial": "overhead in all"}


def sentences(
    answers: Answers, shown: Shown, rows: Sequence[Row], chosen: Sequence[str], certainty: Certainty, seeds: int
) -> Iterator[str]:
    """Yield the headline first. `rows`: of the setting, the floor and emulated ones included: no sentence names them."""
    named = [row for row in rows if not row.is_floor and not row.is_emulated]
    compared = {row.label: row for row in named if row.has_done}
    if not named:
        yield "Nothing to choose from: no framework has a run that is done on a platform of its own."
        return
    if not seeds:
        headline = f"Nothing to choose from: no run of {_either(row.name for row in named)} is done."
        yield " ".join((headline, *_failed(named)))
        return
    if len(compared) == 1:
        told = iter([f"Nothing to choose from: only {_only(compared).name} was measured."])
    elif certainty is Certainty.SHOWN:
        told = _chosen(answers, shown, compared, chosen[0])
    elif certainty is Certainty.DESCRIBED:
        told = _described(list(compared.values()), seeds)
    else:
        told = _not_decided(answers, shown, compared, chosen)
    yield " ".join((next(told), *_failed(named)))
    yield from told
    yield from _lengths(compared.values(), [row for row in rows if not row.is_emulated])


def _failed(rows: Iterable[Row]) -> Iterator[str]:
    """Say whose runs failed, where and in what: no ratio tells how long a framework takes that did not run."""
    for row in rows:
        failed, ended = failures(row.columns.values())
        if failed:
            runs = {name: [run for run in column.group.runs if run.is_failure] for name, column in row.columns.items()}
            reasons = Counter(_in_short(run.reason or "") for of in runs.values() for run in of)
            places = [column.scope.task or name for name, column in row.columns.items() if runs[name]]
            where = f" of {listed(places)}" if len(places) < len(runs) and len(places) <= MOST_PLACES else ""
            why, rest = listed(dict(reasons.most_common())), "" if row.has_done else ": it was not compared"
            yield f"{row.name} failed in {failed} of {counted(ended, 'run')}{where} ({why}){rest}."


def _in_short(reason: str) -> str:
    """Return what a run failed in: `deploy: the framework did not start`, `no trial completed`."""
    if reason.startswith(("step deploy failed", "step deploy took")):
        return "deploy: the framework did not start"
    return reason.partition(": ")[0] or "no reason is known"


def _chosen(answers: Answers, shown: Shown, rows: Mapping[str, Row], chosen: str) -> Iterator[str]:
    others = [label for label in rows if label != chosen]
    won = _won(answers, shown, rows, chosen)
    kinds = {question.metric.partition(".")[0] for question in won}
    yield f"Use {rows[chosen].name}{_while([rows[other] for other in others]) if kinds <= set(SHRINKING) else ''}."
    if won:  # else failed runs decide it
        yield f"{_confidence(answers, shown, rows, {chosen: won})}: {rows[chosen].name} {_facts(rows, won)}."
    if times := [f"{ratio_text(ratio)} as long with {row.name}" for row, ratio in _longer(rows, chosen)]:
        yield f"A job took {listed(times)}."
    yield from _not_shown(answers, shown, rows, [(chosen, other) for other in others])


def _not_decided(answers: Answers, shown: Shown, rows: Mapping[str, Row], chosen: Sequence[str]) -> Iterator[str]:
    names = _either(rows[label].name for label in chosen) if chosen else ""
    beaten = [row.name for label, row in rows.items() if label not in chosen]
    if not chosen:
        yield "No framework is ahead in all: it depends on what matters to you."
    elif beaten:
        yield f"{names}, but not {_either(beaten)}: between them these runs do not decide."
    else:
        yield f"{names}: these runs of {_strategy(rows)} do not decide."
    won = {label: found for label in rows if (found := _won(answers, shown, rows, label))}
    if won:
        facts = "; ".join(f"{rows[label].name} {_facts(rows, found)}" for label, found in won.items())
        yield f"{_confidence(answers, shown, rows, won)}: {facts}."
    among = list(chosen or rows)
    yield from _not_shown(answers, shown, rows, [(one, other) for one in among for other in among if one < other])


def _described(rows: Sequence[Row], seeds: int) -> Iterator[str]:
    """Describe job times of too few seeds, which prove nothing; `rows`: the fastest first."""
    if len(rows[0].columns) > 1:
        yield f"Not decided: {counted(seeds, 'seed')} in each setting."
        return
    whole = [row for row in rows if not failures(row.columns.values())[0]]
    if len(whole) < 2:
        without = f"only {whole[0].name} ran without a failure" if whole else "runs of each framework failed"
        yield f"Not decided: {without}."
        return
    fastest, *others = whole
    seeds = declared_seeds(whole)
    few = counted(seeds, "seed")
    ratios = [(row, row.first.ratios.get(fastest.label)) for row in others]
    slower = [(row, ratio) for row, ratio in ratios if ratio is not None and ratio.low > 1]
    if not slower:
        others_failed = " of those that never failed" if len(whole) < len(rows) else ""
        yield f"In {few} no framework{others_failed} was the fastest each time."
        yield f"This describes {few} of {_strategy({fastest.label: fastest})}. It proves nothing."
        return
    near = _either(row.name for row in whole if row.label not in {row.label for row, _ in slower})
    where, proves = ("it", "proves") if seeds == 1 else ("each", "prove")
    busy = disturbance(run for row in whole for run in row.first.group.runs)
    beside = f" ({busy.text})" if busy.disturbed else ""
    than = f"in {where} {fastest.name} was faster than {listed(row.name for row, _ in slower)}{beside}"
    yield f"So far {near} with {_strategy({fastest.label: fastest})}, though {few} {proves} nothing: {than}."
    yield f"A job took {listed(f'{ratio_text(ratio)} as long with {row.name}' for row, ratio in slower)}."
    if fastest.first.scope.sampler not in LISTED:
        yield "Each trained configurations of its own, which differ in length too; `sampler: fixed` trains the same ones in all."


def _lengths(rows: Iterable[Row], measured: Iterable[Row]) -> Iterator[str]:
    """Yield from which lengths on each framework adds little, and how long the trials and jobs were that were measured."""
    found = [(row, lengths) for row in rows if (lengths := _of_columns(row)).trial is not None]
    if not found:
        return
    few = ""
    if all(one.are_few for _, lengths in found for one in lengths if one is not None):
        few = f" (of all runs: fewer than {FEWEST_UNDISTURBED} undisturbed)"
    columns = [column for row in measured for column in row.columns.values()]
    trials = [column.trial_seconds for column in columns if column.trial_seconds is not None]
    jobs = [column.job_seconds for column in columns if column.job_seconds is not None]
    yours = f" Yours took {duration_range(trials)} and {duration_range(jobs)}." if trials and jobs else ""
    texts = "; ".join(f"{row.name} {_text(lengths, is_few_said=bool(few))}" for row, lengths in found)
    epoch = " (an epoch)" if any(lengths.epoch is not None for _, lengths in found) else ""
    what = f"{_trials(row for row, _ in found)}{epoch} and the job"
    yield f"On this machine less than 5 % is added where {what} exceed: {texts}{few}.{yours}"
    if unknown := [row.name for row, lengths in found if lengths.job is None]:
        yield f"What {listed(unknown)} {'adds' if len(unknown) == 1 else 'add'} to a job is unknown: {NO_BASELINE}."


class _Lengths(NamedTuple):
    trial: Length | None
    epoch: Length | None  # None too where trials have one epoch
    job: Length | None


def _of_columns(row: Row) -> _Lengths:
    """Return the lengths from which on less than the first share is added, over all columns of a row."""
    all_added = [column.added for column in row.columns.values()]
    trials, epochs, jobs = (
        covering(lengths[0] for one in all_added if (lengths := of(one)))
        for of in (attrgetter("lengths"), attrgetter("epoch_lengths"), attrgetter("job_lengths"))
    )
    return _Lengths(trials, epochs if any(round(one.epochs or 0) > 1 for one in all_added) else None, jobs)


def _text(lengths: _Lengths, *, is_few_said: bool) -> str:
    """Return the lengths of a framework as ranges: `0.5 to 0.8 s (0.05 to 0.08 s) and 7 to 9 s (extrapolated)`."""
    assert lengths.trial is not None
    epoch = [_range(lengths.epoch)] if lengths.epoch is not None else []
    of_trial, of_job = (_marks(one, is_few_said=is_few_said) for one in (lengths.trial, lengths.job))
    job = "unknown" if lengths.job is None else _range(lengths.job) if lengths.job.high > 0 else "any job"
    return f"{_range(lengths.trial)}{_beside([*epoch, *of_trial])} and {job}{_beside(of_job)}"


def _beside(texts: Sequence[str]) -> str:
    return f" ({'; '.join(texts)})" if texts else ""


def _range(length: Length) -> str:
    return duration_range((length.low, length.high))


def _marks(length: Length | None, *, is_few_said: bool) -> list[str]:
    if length is None:
        return []
    few = [FEW] if length.are_few and not is_few_said else []
    return ["extrapolated", *few] if length.is_extrapolated else few


def _trials(rows: Iterable[Row]) -> str:
    """Return of how many epochs the trials of some rows were: `trials of 10 epochs`."""
    numbers = sorted({round(column.added.epochs or 0) for row in rows for column in row.columns.values()})
    first = "" if len(numbers) == 1 else f"{numbers[0]} to "
    return f"trials of {first}{counted(numbers[-1], 'epoch')}" if numbers[-1] else "trials"


def _while(rows: Sequence[Row]) -> str:
    """Return from which length of trials and jobs on the choice does not matter: where the worst of these adds little.

    "" where nothing tells it.
    """
    of_rows = [_of_columns(row) for row in rows]
    found = ([one for one in lengths if one is not None] for lengths in zip(*of_rows, strict=True))
    trial, epoch, job = (covering(lengths, lower_end=max) for lengths in found)
    if trial is None or any(one.trial is None for one in of_rows):
        return ""
    epochs = f" (epochs {_range(epoch)})" if epoch is not None else ""
    is_known = job is not None and all(one.job is not None for one in of_rows)
    jobs = " and a job long (how long, no baseline tells)"
    if job is not None and is_known:
        jobs = f" and a job more than {_range(job)}" if job.high > 0 else ""
    few = f" ({FEW})" if any(one.are_few for one in (trial, job) if one is not None) else ""
    return f", unless {_trials(rows)} take more than {_range(trial)}{epochs}{jobs} on this machine{few}"


def _won(answers: Answers, shown: Shown, rows: Mapping[str, Row], label: str) -> dict[Question, list[str]]:
    """Return by question whom a framework was shown to be better than, by label; not where failed runs decide it."""
    found = {
        question: [
            other
            for other in rows
            if other != label
            and shown.outcome(question, label, other) is Outcome.BETTER
            and not shown.is_by_failures(question, label, other)
        ]
        for question in answers.questions
    }
    return {question: beaten for question, beaten in found.items() if beaten}


def _confidence(
    answers: Answers, shown: Shown, rows: Mapping[str, Row], won: Mapping[str, Mapping[Question, Sequence[str]]]
) -> str:
    """Return how sure the facts are, of which sampler, and what weakens those that are not robust."""
    columns = max(len(row.columns) for row in rows.values())
    over = f" over {columns} settings" if columns > 1 else ""
    support = [
        shown.support(question, label, other)
        for label, found in won.items()
        for question, beaten in found.items()
        for other in beaten
    ]
    doubts = sorted(set().union(*(texts for texts, _ in support)) - {ROBUST, ""})
    text = f"Shown at {100 * answers.confidence:g} % confidence with {_strategy(rows)}{over}"
    if not doubts:
        return text
    part = "in part " if any(texts <= {ROBUST, ""} for texts, _ in support) else ""
    return f"{text}, but {part}{listed(doubts)} ({reduce(or_, (found for _, found in support)).text})"


def _strategy(rows: Mapping[str, Row]) -> str:
    """Return what all runs of a setting share: `sampler random`, `sampler tpe + asha`."""
    scope = _only(rows).first.scope
    return f"sampler {with_pruner(scope.sampler, scope.pruner)}"


def _facts(rows: Mapping[str, Row], won: Mapping[Question, Sequence[str]]) -> str:
    """Return what a framework was shown to do, questions with the same others together."""
    by_others: dict[tuple[str, ...], list[str]] = {}
    for question, beaten in won.items():
        did = _DID.get(question.metric) or _DID.get(question.name, f"was better in {question.name.replace('_', ' ')} than")
        by_others.setdefault(tuple(beaten), []).append(did)
    texts = []
    for beaten, all_did in by_others.items():
        *most, last = all_did
        names = listed(rows[label].name for label in beaten)
        texts.append(f"{listed([*(text.removesuffix(' than') for text in most), last])} {names}")
    return "; it ".join(texts)


def _longer(rows: Mapping[str, Row], chosen: str) -> Iterator[tuple[Row, Ratio]]:
    """Yield who was shown to take longer, and by how much, where there is one column."""
    for label, row in rows.items():
        ratio = row.first.ratios.get(chosen) if len(row.columns) == 1 else None
        if label != chosen and ratio is not None and ratio.outcome is Outcome.WORSE and math.isfinite(ratio.estimate):
            yield row, ratio


def _not_shown(answers: Answers, shown: Shown, rows: Mapping[str, Row], pairs: Collection[tuple[str, str]]) -> Iterator[str]:
    """Yield in which questions no difference between these pairs was shown, and where they are as good."""
    as_good, undecided = [], []
    for question in answers.questions:
        outcomes = {shown.outcome(question, one, other) for one, other in pairs}
        if outcomes and outcomes <= {Outcome.EQUIVALENT, Outcome.EQUIVALENT_THOUGH_DIFFERENT}:
            as_good.append(_within(question))
        elif outcomes and outcomes <= {Outcome.UNDECIDED, Outcome.NOT_JUDGED}:
            undecided.append(_noun(question))
    if as_good:
        yield f"As good in {listed(as_good)}."
    if undecided:
        yield f"Not decided: {listed(undecided)}."


def _within(question: Question) -> str:
    return f"{_noun(question)} (within {question.margin_text.partition(' (')[0]})"


def _noun(question: Question) -> str:
    return _NOUNS.get(question.metric) or _NOUNS.get(question.name, question.name)


def _either(names: Iterable[str]) -> str:
    *most, last = names
    return f"{', '.join(most)} or {last}" if most else last


def _only(rows: Mapping[str, Row]) -> Row:
    return next(iter(rows.values()))
