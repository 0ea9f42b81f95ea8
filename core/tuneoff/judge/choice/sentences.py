"""The choice in words: the headline, how sure it is, what was not shown, and from which lengths on each framework adds little.

Who was shown to be better than whom is by the verdicts or by the claims over tasks, question by question.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import reduce
from operator import attrgetter, or_
from typing import NamedTuple

from tuneoff.base.format import counted, counted_range, duration_range, listed
from tuneoff.experiment.names import with_pruner
from tuneoff.experiment.strategies import DEFAULT, LISTED
from tuneoff.judge.answers.answer import ROBUST, Outcome, Question
from tuneoff.judge.choice.added import FURTHEST, Length, covering
from tuneoff.judge.choice.choice import Certainty, LengthTable, Row, declared_seeds, failures, ratio_text
from tuneoff.judge.choice.evidence import PairEvidence
from tuneoff.judge.results import FEWEST_UNDISTURBED, disturbance

EXTRAPOLATED, FEW = "extrapolated", "few undisturbed runs"
NO_BASELINE = "no baseline (serial) ran on its platform with its start method"
MARKS = {"is_extrapolated": "*", "are_few": "+"}  # of a length
NONE = ""
SHRINKING = ("time", "overhead", "energy", "carbon", "cost", "waste")  # kinds of metrics that matter less, the longer trials are
MOST_PLACES = 3  # tasks that are named as those in which runs failed
_DID = {  # what the better one did, by question or its metric
    "quality": "found better models",
    "time": "was faster",
    "overhead.per_trial": "had less overhead per trial (start-up included)",  # not what a table calls added
    "energy": "needed less energy",
    "cost": "cost less",
}
_NOUNS = {
    "quality": "quality of the best model",
    "time": "job time",
    "overhead.per_trial": "overhead per trial (start-up included)",
}


def sentences(
    evidence: PairEvidence,
    rows: Sequence[Row],
    chosen: Sequence[str],
    certainty: Certainty,
    seeds: int,
    *,
    is_filtered: bool,
) -> Iterator[str]:
    """Yield the headline first. `rows`: of the setting, the floor and excluded ones included: no sentence names them.

    `is_filtered`: the rows are those alone that meet a request.
    """
    named = [row for row in rows if row.is_candidate]
    compared = {row.label: row for row in named if row.has_done}
    if not named:
        yield "Nothing to choose from: no framework has a done run on a real platform."
        return
    if not seeds:
        headline = f"Nothing to choose from: no run of {listed((row.name for row in named), 'or')} is done."
        yield headline
        yield from _failed(named)
        return
    if len(compared) == 1:
        only = "meets the request and was measured" if is_filtered else "was measured"
        lines = iter([f"Nothing to choose from: only {next(iter(compared.values())).name} {only}."])
    elif certainty is Certainty.SHOWN:
        lines = _chosen(evidence, compared, chosen[0])
    elif certainty is Certainty.DESCRIBED:
        lines = _described(list(compared.values()), seeds)
    else:
        lines = _not_decided(evidence, compared, chosen)
    yield next(lines)
    yield from _failed(named)
    yield from lines


def _failed(rows: Iterable[Row]) -> Iterator[str]:
    """Say whose runs failed, where and in what: no ratio tells how long a framework takes that did not run."""
    for row in rows:
        failed, ended = failures(row.columns.values())
        if failed:
            runs = {name: [run for run in column.group.runs if run.is_failure] for name, column in row.columns.items()}
            texts = [run.reason or "" for failed_runs in runs.values() for run in failed_runs]
            reasons = Counter(  # `deploy: the framework did not start`, `no trial completed`
                "deploy: the framework did not start"
                if text.startswith(("step deploy failed", "step deploy took"))
                else text.partition(": ")[0].lstrip("0123456789 ") or "no reason is known"
                for text in texts
            )
            places = [column.scope.task or name for name, column in row.columns.items() if runs[name]]
            where = f" of {listed(places)}" if len(places) < len(runs) and len(places) <= MOST_PLACES else ""
            why, rest = listed(dict(reasons.most_common())), "" if row.has_done else ": it was not compared"
            yield f"{row.name} failed in {failed} of {counted(ended, 'run')}{where} ({why}){rest}."


def _chosen(evidence: PairEvidence, rows: Mapping[str, Row], chosen: str) -> Iterator[str]:
    others = [label for label in rows if label != chosen]
    won = _won(evidence, rows, chosen)
    kinds = {question.metric.partition(".")[0] for question in won}
    unless, beyond = "", ""  # above which lengths of trials and jobs each of the others adds little
    of_rows = [lengths_of(rows[other]) for other in others]
    if kinds <= set(SHRINKING) and all(lengths.trial is not None for lengths in of_rows):
        by_kind = ([length for length in lengths if length is not None] for lengths in zip(*of_rows, strict=True))
        trial, _, job = (covering(lengths, lower_end=max) for lengths in by_kind)
        assert trial is not None
        jobs = " and jobs are long (how long is unknown without a baseline)"
        if job is not None and all(lengths.job is not None for lengths in of_rows):
            jobs = f" and jobs more than {range_text(job)}" if job.high > 0 else ""
        ranges = [length for length in (trial, job) if length is not None]
        marks = [EXTRAPOLATED] if any(length.is_extrapolated for length in ranges) else []
        marks += [FEW] if any(length.are_few for length in ranges) else []
        adds = f"{listed(rows[other].name for other in others)} add{'s' if len(others) == 1 else ''} less than 5 %"
        unless = f", unless trials take more than {range_text(trial)}{jobs}"
        beside = f" ({', '.join(marks)})" if marks else ""
        beyond = f"For longer trials and jobs {adds} on this machine{beside}: choose by other criteria."
    yield f"Use {rows[chosen].name}{unless}."
    yield from filter(None, [beyond])
    if won:  # else failed runs decide it
        yield f"{_confidence(evidence, rows, {chosen: won})}: {rows[chosen].name} {_facts(rows, won)}."
    longer = []
    for label, row in rows.items():
        ratio = row.first.ratios.get(chosen) if len(row.columns) == 1 else None
        if label != chosen and ratio is not None and ratio.outcome is Outcome.WORSE and math.isfinite(ratio.estimate):
            longer.append(f"{ratio_text(ratio)} as long with {row.name}")
    if longer:
        yield f"A job took {listed(longer)}."
    yield from _not_shown(evidence, [(chosen, other) for other in others])


def _not_decided(evidence: PairEvidence, rows: Mapping[str, Row], chosen: Sequence[str]) -> Iterator[str]:
    names = listed((rows[label].name for label in chosen), "or") if chosen else ""
    beaten = [row.name for label, row in rows.items() if label not in chosen]
    if not chosen:
        yield "No framework is ahead in everything: the choice depends on what matters to you."
    elif beaten:
        yield f"{names}, but not {listed(beaten, 'or')}: these runs do not decide between them."
    else:
        yield f"{names}: these runs of {_strategy(rows)} do not decide."
    won = {label: wins for label in rows if (wins := _won(evidence, rows, label))}
    if won:
        facts = "; ".join(f"{rows[label].name} {_facts(rows, wins)}" for label, wins in won.items())
        yield f"{_confidence(evidence, rows, won)}: {facts}."
    among = list(chosen or rows)
    yield from _not_shown(evidence, [(label, other) for label in among for other in among if label < other])


def _described(rows: Sequence[Row], seeds: int) -> Iterator[str]:
    """Describe job times of too few seeds, which prove nothing; `rows`: the fastest first."""
    if len(rows[0].columns) > 1:
        yield f"Not decided: only {counted(seeds, 'seed')} in each setting."
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
        others_failed = " without failures" if len(whole) < len(rows) else ""
        yield f"No framework{others_failed} was the fastest in each of {few}."
        yield f"This describes {few} of {_strategy({fastest.label: fastest})} and proves nothing."
        return
    near = listed((row.name for row in whole if row.label not in {row.label for row, _ in slower}), "or")
    where = f"in {few}, which proves nothing" if seeds == 1 else f"in each of {few}, which prove nothing"
    busy = disturbance(run for row in whole for run in row.first.group.runs)
    beside = f"; {busy.text}" if busy.disturbed else ""
    than = f"{fastest.name} was faster than {listed(row.name for row, _ in slower)} {where}"
    yield f"So far {'' if near == fastest.name else f'{near}: '}{than} ({_strategy({fastest.label: fastest})}{beside})."
    yield f"A job took {listed(f'{ratio_text(ratio)} as long with {row.name}' for row, ratio in slower)}."
    if fastest.first.scope.sampler not in LISTED:
        yield "Each framework trained other configurations, which take other times; sampler fixed trains the same ones in all."


def _won(evidence: PairEvidence, rows: Mapping[str, Row], label: str) -> dict[Question, list[str]]:
    """Return by question whom a framework was shown to be better than, by label; not where failed runs decide it."""
    won = {
        question: [
            other
            for other in rows
            if other != label
            and evidence.outcome(question, label, other) is Outcome.BETTER
            and not evidence.is_by_failures(question, label, other)
        ]
        for question in evidence.answers.questions
    }
    return {question: beaten for question, beaten in won.items() if beaten}


def _confidence(evidence: PairEvidence, rows: Mapping[str, Row], won: Mapping[str, Mapping[Question, Sequence[str]]]) -> str:
    """Return how sure the facts are, of which sampler, and what weakens those that are not robust."""
    columns = max(len(row.columns) for row in rows.values())
    over = f" over {columns} settings" if columns > 1 else ""
    support = [
        evidence.support(question, label, other)
        for label, wins in won.items()
        for question, beaten in wins.items()
        for other in beaten
    ]
    doubts = sorted(set().union(*(texts for texts, _ in support)) - {ROBUST, ""})
    text = f"Shown at {100 * evidence.answers.confidence:g} % confidence with {_strategy(rows)}{over}"
    if not doubts:
        return text
    part = "in part " if any(texts <= {ROBUST, ""} for texts, _ in support) else ""
    return f"{text}, but {part}{listed(doubts)} ({reduce(or_, (disturbed for _, disturbed in support)).text})"


def _strategy(rows: Mapping[str, Row]) -> str:
    """Return what all runs of a setting share: `sampler random`, `sampler tpe + asha`, `default samplers`."""
    scope = next(iter(rows.values())).first.scope
    if scope.sampler == DEFAULT:
        return with_pruner("default samplers", scope.pruner)
    return f"sampler {with_pruner(scope.sampler, scope.pruner)}"


def _facts(rows: Mapping[str, Row], won: Mapping[Question, Sequence[str]]) -> str:
    """Return what a framework was shown to do, questions with the same others together."""
    by_others: dict[tuple[str, ...], list[str]] = {}
    for question, beaten in won.items():
        did = _DID.get(question.metric) or _DID.get(question.name, f"was better in {question.name.replace('_', ' ')}")
        groups = (column.group for row in rows.values() for column in row.columns.values())
        is_estimated = any(group.estimate(question.metric).is_estimated for group in groups)
        by_others.setdefault(tuple(beaten), []).append(f"{did} (estimated)" if is_estimated else did)
    texts = (f"{listed(did)} than {listed(rows[label].name for label in beaten)}" for beaten, did in by_others.items())
    return "; it ".join(texts)


def _not_shown(evidence: PairEvidence, pairs: Collection[tuple[str, str]]) -> Iterator[str]:
    """Yield in which questions no difference between these pairs was shown, and where they are as good."""
    as_good, undecided = [], []
    for question in evidence.answers.questions:
        outcomes = {evidence.outcome(question, label, other) for label, other in pairs}
        if outcomes and outcomes <= {Outcome.EQUIVALENT, Outcome.EQUIVALENT_THOUGH_DIFFERENT}:
            as_good.append(f"{_noun(question)} (within {question.margin_text.partition(' (')[0]})")
        elif outcomes and outcomes <= {Outcome.UNDECIDED, Outcome.NOT_JUDGED}:
            undecided.append(_noun(question))
    if as_good:
        yield f"As good in {listed(as_good)}."
    if undecided:
        yield f"Not decided: {listed(undecided)}."


def _noun(question: Question) -> str:
    return _NOUNS.get(question.metric) or _NOUNS.get(question.name, question.name)


class Lengths(NamedTuple):
    """From which lengths on a framework adds less than the first share, over all its columns."""

    trial: Length | None
    epoch: Length | None  # None too where trials have one epoch
    job: Length | None


def lengths_of(row: Row) -> Lengths:
    """Return what all columns of a row together tell."""
    all_added = [column.added for column in row.columns.values()]
    trials, epochs, jobs = (
        covering(lengths[0] for added in all_added if (lengths := get(added)))
        for get in (attrgetter("lengths"), attrgetter("epoch_lengths"), attrgetter("job_lengths"))
    )
    return Lengths(trials, epochs if any(round(added.epochs or 0) > 1 for added in all_added) else None, jobs)


def range_text(length: Length) -> str:
    """Return a length as its range: `0.5 to 0.8 s`."""
    return duration_range((length.low, length.high))


def length_table(rows: Sequence[Row]) -> LengthTable | None:
    """Return the table of the frameworks whose lengths are known, and below them what was measured; None without any.

    `rows`: those of a setting that are compared, the baseline included, which has no line.
    """
    named = [(row, lengths) for row in rows if not row.is_floor and (lengths := lengths_of(row)).trial is not None]
    if not named:
        return None
    columns = [column for row in rows for column in row.columns.values()]
    has_epochs = any(lengths.epoch is not None for _, lengths in named)
    numbers = {round(column.added.epochs or 0) for row, _ in named for column in row.columns.values()}
    epochs = counted_range(numbers, "epoch") if any(numbers) else ""
    heads = ("framework", f"trial of {epochs}" if epochs else "trial", *(("epoch",) if has_epochs else ()), "job")
    lines = []
    for row, lengths in named:
        assert lengths.trial is not None
        epoch = (range_text(lengths.epoch) if lengths.epoch is not None else NONE,) if has_epochs else ()
        job = "unknown" if lengths.job is None else _marked(lengths.job) if lengths.job.high > 0 else "any"
        lines.append((row.name, _marked(lengths.trial), *epoch, job))
    trained = ((column.trial_seconds, column.added.epochs) for column in columns)
    of_epoch = (
        (_measured(seconds / number for seconds, number in trained if seconds is not None and number),) if has_epochs else ()
    )
    trial, job = (_measured(getattr(column, name) for column in columns) for name in ("trial_seconds", "job_seconds"))
    lines.append(("measured", trial, *of_epoch, job))
    return LengthTable(
        caption="Each adds less than 5 % (half to trials, half to jobs) where both are longer:",
        heads=heads,
        rows=tuple(lines),
        notes=tuple(_notes(named)),
    )


def _notes(named: Sequence[tuple[Row, Lengths]]) -> Iterator[str]:
    lengths = [length for _, row_lengths in named for length in (row_lengths.trial, row_lengths.job) if length is not None]
    if any(length.is_extrapolated for length in lengths):
        yield f"{MARKS['is_extrapolated']} {EXTRAPOLATED}: over {FURTHEST:g} times the longest that was measured."
    if any(length.are_few for length in lengths):
        yield (f"{MARKS['are_few']} lowest to highest of all runs: fewer than {FEWEST_UNDISTURBED} were undisturbed.")
    if unknown := [row.name for row, row_lengths in named if row_lengths.job is None]:
        yield f"What {listed(unknown)} {'adds' if len(unknown) == 1 else 'add'} to a job is unknown: {NO_BASELINE}."


def _marked(length: Length) -> str:
    marks = "".join(mark for name, mark in MARKS.items() if getattr(length, name))
    return f"{range_text(length)}{marks and ' '}{marks}"


def _measured(values: Iterable[float | None]) -> str:
    durations = [seconds for seconds in values if seconds is not None]
    return duration_range(durations) if durations else NONE
