"""The choice in words: the headline, how sure it is, what was not shown, and from which length of trials on it matters little.

Who was shown to be better than whom is by the verdicts or by the claims over tasks, question by question.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from tuneoff.base.clock import MILLISECONDS
from tuneoff.base.format import counted, duration_text, listed
from tuneoff.judge.answers.answer import Answers, Outcome, OverTasks, Question, Verdict
from tuneoff.judge.answers.phrases import median_difference, ratio_of
from tuneoff.judge.choice.choice import Certainty, Length, Ratio, Row, length_text, ratio_text
from tuneoff.judge.runs import Scope
from tuneoff.judge.stats.location import middle

SHRINKING = ("time", "overhead", "energy", "carbon", "cost", "waste")  # kinds of metrics that matter less, the longer trials are
_DID = {  # what the better one did, by question
    "quality": "found better models than",
    "time": "was faster than",
    "overhead": "added less to a trial than",
    "energy": "needed less energy than",
    "cost": "cost less than",
}
_NOUNS = {"quality": "quality of the best model", "time": "job time", "overhead": "time added to a trial"}


class Shown:
    """The outcomes between the frameworks of a setting; `scopes`: its columns."""

    def __init__(self, answers: Answers, scopes: Sequence[Scope]) -> None:
        self._answers = answers
        self._scopes = scopes
        self._error = 1 - answers.confidence
        self._verdicts = {
            (verdict.question.name, verdict.scope, frozenset((verdict.one, verdict.other))): verdict
            for verdict in answers.verdicts
            if verdict.scope in scopes and not verdict.is_noise
        }

    def outcome(self, question: Question, label: str, other: str) -> Outcome:
        """Return what holds of `label` against `other`: of several columns the claim over tasks, or what all columns agree in."""
        if len(self._scopes) > 1 and (found := self._over_tasks(question, label, other)) is not None:
            return found
        outcomes = [self._in_column(question, scope, label, other) for scope in self._scopes]
        known = {outcome for outcome in outcomes if outcome is not None}
        if not known or known == {Outcome.NOT_JUDGED}:
            return Outcome.NOT_JUDGED
        return known.pop() if len(known) == 1 else Outcome.UNDECIDED

    def ratios(self, question: Question, scope: Scope, labels: Sequence[str]) -> dict[str, dict[str, Ratio]]:
        """Return by label and other label how many times as long the one takes in a column."""
        found: dict[str, dict[str, Ratio]] = {label: {} for label in labels}
        for (name, of, _), verdict in self._verdicts.items():
            if (name, of) == (question.name, scope):
                for label, other in ((verdict.one, verdict.other), (verdict.other, verdict.one)):
                    ratio = _ratio(verdict, label)
                    if label in found and ratio is not None:
                        found[label][other] = ratio
        return found

    def _in_column(self, question: Question, scope: Scope, label: str, other: str) -> Outcome | None:
        verdict = self._verdicts.get((question.name, scope, frozenset((label, other))))
        return verdict.outcome_for(label) if verdict is not None else None

    def _over_tasks(self, question: Question, label: str, other: str) -> Outcome | None:
        for one in self._answers.across:
            same = (one.scope.sampler, one.scope.pruner) == (self._scopes[0].sampler, self._scopes[0].pruner)
            if not same or one.question.name != question.name:
                continue
            for pair in one.compared:
                if not pair.is_noise and {pair.one, pair.other} == {label, other} and pair.mean is not None:
                    return self._of_pair(pair, label, "min" if one.is_regret else question.better)
        return None

    def _of_pair(self, pair: OverTasks, label: str, better: str) -> Outcome:
        if pair.p is None or pair.p > self._error or pair.mean is None:
            return Outcome.UNDECIDED
        one_is_better = (pair.mean.estimate < 0) == (better == "min")
        return Outcome.BETTER if one_is_better == (label == pair.one) else Outcome.WORSE


def _ratio(verdict: Verdict, label: str) -> Ratio | None:
    """Return the ratio of a verdict on the ratio scale, as it is for `label`; None without a seed that both have."""
    sign = 1 if label == verdict.one else -1
    differences = [sign * one.difference for one in verdict.differences if one.difference is not None]
    if not differences or verdict.question.scale != "ratio":
        return None
    judged = verdict.interval if verdict.outcome is not Outcome.NOT_JUDGED else None
    if judged is not None:
        ends, estimate = sorted((sign * judged.low, sign * judged.high)), sign * judged.estimate
    else:
        ends, estimate = [min(differences), max(differences)], middle(differences)
    seconds = median_difference(verdict)
    return Ratio(
        estimate=ratio_of(estimate),
        low=ratio_of(ends[0]),
        high=ratio_of(ends[1]),
        is_interval=judged is not None,
        difference_s=sign * seconds / MILLISECONDS if seconds is not None else math.nan,
        outcome=verdict.outcome_for(label),
    )


def sentences(
    answers: Answers, shown: Shown, rows: Sequence[Row], chosen: Sequence[str], certainty: Certainty, seeds: int
) -> Iterator[str]:
    """Yield the headline first. `rows`: of the setting, the floor and emulated ones included: no sentence names them."""
    compared = {row.label: row for row in rows if not row.is_floor and not row.is_emulated}
    if not compared:
        yield "Nothing to choose from: no framework has a run that is done on a platform of its own."
        return
    if not seeds:
        names = _either(row.name for row in compared.values())
        yield f"Nothing to choose from: no run of {names} is done; tuneoff status says why."
        return
    if len(compared) == 1:
        yield f"Nothing to choose from: only {_only(compared).name} was measured."
    elif certainty is Certainty.SHOWN:
        yield from _chosen(answers, shown, compared, chosen[0])
    elif certainty is Certainty.DESCRIBED:
        yield from _described(list(compared.values()), seeds)
    else:
        yield from _not_decided(answers, shown, compared, chosen)
    yield from _lengths(compared.values())


def _chosen(answers: Answers, shown: Shown, rows: Mapping[str, Row], chosen: str) -> Iterator[str]:
    others = [label for label in rows if label != chosen]
    won = _won(answers, shown, rows, chosen)
    kinds = {question.metric.partition(".")[0] for question in answers.questions if question.name in won}
    yield f"Use {rows[chosen].name}{_while(rows[other] for other in others) if kinds <= set(SHRINKING) else ''}."
    yield f"{_confidence(answers, rows.values())}: {rows[chosen].name} {_facts(won)}."
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
        yield f"{names}: these runs do not decide."
    facts = [f"{row.name} {_facts(won)}" for label, row in rows.items() if (won := _won(answers, shown, rows, label))]
    if facts:
        yield f"{_confidence(answers, rows.values())}: {'; '.join(facts)}."
    among = list(chosen or rows)
    yield from _not_shown(answers, shown, rows, [(one, other) for one in among for other in among if one < other])


def _described(rows: Sequence[Row], seeds: int) -> Iterator[str]:
    """Describe job times of too few seeds, which prove nothing; `rows`: the fastest first."""
    fastest, *others = rows
    few = counted(seeds, "seed")
    if len(fastest.columns) > 1:
        yield f"Not decided: {few} in each setting."
        return
    ratios = [(row, row.first.ratios.get(fastest.label)) for row in others]
    slower = [(row, ratio) for row, ratio in ratios if ratio is not None and ratio.low > 1]
    if slower:
        each = few if seeds == 1 else f"{seeds} of {few}"
        yield f"In {each} {fastest.name} was faster than {listed(row.name for row, _ in slower)}."
        yield f"A job took {listed(f'{ratio_text(ratio)} as long with {row.name}' for row, ratio in slower)}."
    else:
        yield f"In {few} no framework was the fastest each time."
    yield f"This describes {few} of sampler {fastest.first.scope.sampler}. It proves nothing."


def _lengths(rows: Iterable[Row]) -> Iterator[str]:
    """Yield from which length of a trial on each framework adds little to it."""
    if texts := [f"{row.name} {text}" for row in rows if (text := _length(row)) is not None]:
        yield f"A framework adds less than 5 % to trials and to jobs longer than: {', '.join(texts)}."


def _length(row: Row) -> str | None:
    """Return the greatest lengths of trials and jobs over a row's columns; None where nothing tells them."""
    of_trials, of_jobs = _longest([row])
    if of_trials is None or of_jobs is None:
        return None
    if of_trials.is_extrapolated and of_jobs.is_extrapolated:
        return f"{duration_text(of_trials.seconds)} and {duration_text(of_jobs.seconds)} (extrapolated)"
    return f"{length_text(of_trials)} and {length_text(of_jobs)}"


def _while(rows: Iterable[Row]) -> str:
    """Return from which length of trials and jobs on the choice does not matter; "" where nothing tells it."""
    of_trials, of_jobs = _longest(list(rows))
    if of_trials is None or of_jobs is None:
        return ""
    trials, jobs = duration_text(of_trials.seconds), duration_text(of_jobs.seconds)
    return f", unless your trials take more than about {trials} and a whole job more than about {jobs}"


def _longest(rows: Sequence[Row]) -> tuple[Length | None, Length | None]:
    """Return the greatest lengths, of trials and of jobs, from which on less than the first share is added."""
    all_added = [column.added for row in rows for column in row.columns.values()]
    of_trials = [added.lengths[0] for added in all_added if added.lengths]
    of_jobs = [added.job_lengths[0] for added in all_added if added.job_lengths]
    return (
        max(of_trials, key=lambda length: length.seconds, default=None),
        max(of_jobs, key=lambda length: length.seconds, default=None),
    )


def _won(answers: Answers, shown: Shown, rows: Mapping[str, Row], label: str) -> dict[str, list[str]]:
    """Return by question whom a framework was shown to be better than."""
    found = {
        question.name: [
            row.name for other, row in rows.items() if other != label and shown.outcome(question, label, other) is Outcome.BETTER
        ]
        for question in answers.questions
    }
    return {name: beaten for name, beaten in found.items() if beaten}


def _confidence(answers: Answers, rows: Iterable[Row]) -> str:
    columns = max(len(row.columns) for row in rows)
    return f"Shown at {100 * answers.confidence:g} % confidence" + (f", over {columns} settings" if columns > 1 else "")


def _facts(won: Mapping[str, Sequence[str]]) -> str:
    """Return what a framework was shown to do, questions with the same others together."""
    by_others: dict[tuple[str, ...], list[str]] = {}
    for name, beaten in won.items():
        by_others.setdefault(tuple(beaten), []).append(_DID.get(name, f"was better in {name.replace('_', ' ')} than"))
    texts = []
    for beaten, did in by_others.items():
        *most, last = did
        texts.append(f"{listed([*(text.removesuffix(' than') for text in most), last])} {listed(beaten)}")
    return "; it ".join(texts)


def _longer(rows: Mapping[str, Row], chosen: str) -> Iterator[tuple[Row, Ratio]]:
    """Yield who was shown to take longer, and by how much, where there is one column."""
    for label, row in rows.items():
        ratio = row.first.ratios.get(chosen) if len(row.columns) == 1 else None
        if label != chosen and ratio is not None and ratio.outcome is Outcome.WORSE:
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
    return _NOUNS.get(question.name, question.name)


def _either(names: Iterable[str]) -> str:
    *most, last = names
    return f"{', '.join(most)} or {last}" if most else last


def _only(rows: Mapping[str, Row]) -> Row:
    return next(iter(rows.values()))
