"""What changed between two folders as JSON and for people: changes first, then all else, then what was not compared."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tuneoff.base.format import MISSING, counted, figure
from tuneoff.base.json_values import field_values, values
from tuneoff.base.output import columns, printable
from tuneoff.judge.answers.answer import Outcome, Verdict
from tuneoff.judge.answers.judging import BOTH_FAILED
from tuneoff.judge.answers.phrases import difference_text, seen_text, signed
from tuneoff.judge.comparison.diff import Change, Comparison
from tuneoff.judge.comparison.environments import environment_table
from tuneoff.judge.runs import POOL
from tuneoff.record.flag_meanings import marked

_NAMES = {
    Outcome.EQUIVALENT: "no change that matters",
    Outcome.EQUIVALENT_THOUGH_DIFFERENT: "a change within the margin",
}
_OF_VERDICT = ("interval", "is_robust", "robustness", "disturbance")
_OPEN = (Outcome.UNDECIDED.text, Outcome.NOT_JUDGED.text)
NOT_INTERLEAVED = (
    "The runs of A and of B were not interleaved: what the machine did between them is in every change of a time, an energy "
    "or a cost."
)


def lines(found: Comparison) -> list[str]:
    """Return the whole comparison."""
    texts = [*headline(found), "", f"A: {found.folders[0]}", f"B: {found.folders[1]}"]
    texts.append(f"{counted(found.runs, 'run')} of the same experiments in both; differences are B - A, paired by seed")
    for title, part in (
        ("what the runs came to:", _ended(found)),
        ("bit for bit:", _exact(found)),
        ("no change beyond noise:" if found.is_judged else "not judged:", _quiet(found.changes)),
        ("noise, without any change of version:", _noise(found.changes)),
        ("flags, runs in A and in B:", _flags(found.flags)),
        ("environment, A and B:", _environment(found)),
        ("not compared:", [*_blocked(found.changes), *found.left_out]),
    ):
        texts += ["", title, *(f"  {text}" for text in part)] if part else []
    texts += ["", NOT_INTERLEAVED] if found.same_machine else []
    return list(map(printable, texts))


def _flags(flags: Mapping[str, tuple[int, int]]) -> list[str]:
    return [f"{mark}: {' and '.join(map(str, flags[mark.removeprefix('! ')]))}" for mark in marked(flags)]


def headline(found: Comparison) -> Iterator[str]:
    """Yield what changed beyond noise, or that nothing did, or that nothing was judged."""
    if found.has_changed:
        yield "changed beyond noise:"
        yield from (f"  {_change(change, found.changes)}" for change in found.beyond)
        for one in found.unequal:
            yield f"  {one.name}: {one.unequal} of {counted(one.values, 'value')} of equal configurations differ in their bits"
        for title, runs in (
            ("failed in B and not in A", [one for one in found.ended if one.is_failure]),
            ("failed in A and not in B", [one for one in found.ended if one.is_recovery]),
            ("ended otherwise", [one for one in found.ended if not (one.is_failure or one.is_recovery)]),
        ):
            if runs:
                yield f"  {title}: {counted(len(runs), 'run')} of {', '.join(dict.fromkeys(one.name for one in runs))}"
        return
    if found.is_judged:
        judged = [one for one in found.changes if one.outcome not in (None, Outcome.NOT_JUDGED)]
        still = sum(_word(one.verdict) not in _OPEN for one in judged if one.verdict is not None)
        yield (
            f"nothing changed beyond noise: {counted(still, 'question')} without a change that matters, "
            f"{len(judged) - still} not decided"
        )
    else:
        yield "nothing is judged: no question has enough seeds in both folders; what could be seen did not change"


def _change(change: Change, others: Sequence[Change]) -> str:
    assert change.verdict is not None
    word = "better" if change.outcome is Outcome.BETTER else "worse"
    text = f"{change.name}: {change.question.name} is {word}, {seen_text(change.verdict)}"
    notes = [counted(change.verdict.seeds, "seed")]
    if not change.verdict.is_robust:
        why = ": another reasonable choice changes it" if change.verdict.changing else ""
        notes.append(f"{change.verdict.robustness}{why}")
    notes.append(change.verdict.disturbance.text)
    notes += ["no larger than what a framework differs by from itself"] if change.is_within_equal_entries else []
    notes += _pool(change, others)
    return f"{text} ({'; '.join(notes)})"


def _pool(change: Change, others: Sequence[Change]) -> list[str]:
    """Say that the plain pool, which has no framework, changed too: then it was the machine, or tuneoff."""
    if change.adapter == POOL:
        return ["no framework: this is the machine, or tuneoff"]
    for one in others:
        same = one.adapter == POOL and (one.scope, one.question.name) == (change.scope, change.question.name)
        if same and one.outcome is change.outcome and one.verdict is not None:
            return [f"{POOL}, without a framework, changed too: {seen_text(one.verdict)}"]
    return []


def _quiet(changes: Sequence[Change]) -> list[str]:
    """Return a table of the questions that did not change beyond noise, then why what is open is open."""
    quiet = [one for one in changes if one.verdict is not None and not one.is_beyond_noise]
    if not quiet:
        return []
    rows, reasons = [], dict[str, None]()
    for change in quiet:
        assert change.verdict is not None
        word = _word(change.verdict)
        rows.append((change.name, change.question.name, word, _size(change.verdict)))
        if word in _OPEN:
            reasons[f"{word}: {change.reason}"] = None
    return [*columns(("framework", "question", "says", "B against A"), rows, margin=2).splitlines(), *reasons]


def _size(verdict: Verdict) -> str:
    """Return the interval of a change, or without one the change of the only seed."""
    known = [pair.difference for pair in verdict.differences if pair.difference is not None]
    if verdict.interval is None and len(known) == 1 and not any(verdict.failures):
        return f"{signed(known[0], verdict.question)} in 1 seed"
    return seen_text(verdict)


def _word(verdict: Verdict) -> str:
    """Return what an outcome says of a change; where both folders have the very same figures, that."""
    differences = [pair.difference for pair in verdict.differences if pair.reason != BOTH_FAILED]
    if differences and all(difference == 0 for difference in differences):
        return "equal in every seed"
    return _NAMES.get(verdict.outcome, verdict.outcome.text)


def _noise(changes: Sequence[Change]) -> list[str]:
    """Return what equal entries differ by within each folder, by scope and question."""
    rows: dict[tuple[str, str, str], dict[str, str]] = {}
    for change in changes:
        for one in change.noise:
            row = rows.setdefault((change.scope.text, change.question.name, one.pair), {})
            row[one.side] = difference_text(one.interval, change.question)
    table = [(*names, row.get("A", MISSING), row.get("B", MISSING)) for names, row in rows.items()]
    return columns(("scope", "question", "the same twice", "in A", "in B"), table, margin=2).splitlines() if table else []


def _ended(found: Comparison) -> list[str]:
    return [
        f"{one.name} seed {one.seed}: {one.old} in A, {one.new} in B{f': {one.reason}' if one.reason else ''}"
        for one in found.ended
    ]


def _exact(found: Comparison) -> list[str]:
    texts = []
    for one in found.exact:
        old, new = one.tried
        tried = f"both tried {one.configurations} of A's {old} and B's {new} configurations"
        if not one.values:
            texts.append(f"{one.name}: no configuration in common; {tried}")
        elif not one.unequal:
            texts.append(f"{one.name}: all {one.values} values equal; {tried}")
        else:
            due = "" if one.is_due else " (another machine, so that is no surprise)"
            texts.append(f"{one.name}: {one.unequal} of {one.values} values unequal{due}, the first: {one.example}; {tried}")
    return texts


def _environment(found: Comparison) -> list[str]:
    texts = [] if found.same_machine else ["another machine, so no time, energy or cost is compared"]
    texts += environment_table(found.environment, "in A", "in B").splitlines() if found.environment else []
    texts += [f"analysis.{name}: {old} and {new}: judged by A's" for name, (old, new) in found.analysis.items()]
    if found.sentinel is not None:
        texts.append(f"a fixed calculation before each run took {figure(found.sentinel)} times as long in B as in A, by medians")
    return texts


def _blocked(changes: Sequence[Change]) -> list[str]:
    by_reason: dict[str, dict[str, list[str]]] = {}
    for change in changes:
        if change.verdict is None:
            by_reason.setdefault(change.reason, {}).setdefault(change.question.name, []).append(change.name)
    return [
        f"{', '.join(questions)} of {', '.join(dict.fromkeys(name for names in questions.values() for name in names))}: {reason}"
        for reason, questions in by_reason.items()
    ]


def to_json(found: Comparison) -> dict[str, Any]:
    """Return everything that the text says, and each pair of seeds, for `write_json`."""
    return {
        **values(found, ("has_changed", "runs", "same_machine", "environment", "analysis", "exact", "flags")),
        "answer": list(headline(found)),
        "a": found.folders[0].resolve(),
        "b": found.folders[1].resolve(),
        "sentinel_ratio": found.sentinel,
        "changes": [_change_json(change) for change in found.changes],
        "ended": [{**field_values(one), **values(one, ("is_failure", "is_recovery"))} for one in found.ended],
        "not_compared": found.left_out,
    }


def _change_json(change: Change) -> dict[str, Any]:
    verdict, question = change.verdict, change.question
    return {
        "of": change.name,
        "question": question.name,
        **values(question, ("metric", "unit", "scale", "margin"), {"margin": question.margin_text}),
        **values(change, ("adapter", "is_beyond_noise", "reason", "noise", "outcome"), {"outcome": change.reason}),
        "differences": (),
        **(dict.fromkeys(_OF_VERDICT) if verdict is None else values(verdict, (*_OF_VERDICT, "differences"))),
    }
