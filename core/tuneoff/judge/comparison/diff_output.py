"""What changed between two folders as JSON and for people: changes first, then all else, then what was not compared."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from tuneoff.base.format import MISSING, counted, figure
from tuneoff.base.json_values import field_values, values
from tuneoff.base.output import columns, printable
from tuneoff.judge.answers.answer import Outcome, Verdict
from tuneoff.judge.answers.judging import BOTH_FAILED
from tuneoff.judge.answers.phrases import difference_text, is_within_noise, seen_text, signed
from tuneoff.judge.comparison.diff import Change, Comparison
from tuneoff.judge.comparison.environments import environment_table
from tuneoff.judge.results import POOL
from tuneoff.record.flag_meanings import marked

_NAMES = {
    Outcome.EQUIVALENT: "no change that matters",
    Outcome.EQUIVALENT_THOUGH_DIFFERENT: "a change within the margin",
}
_OF_VERDICT = ("interval", "is_robust", "robustness", "disturbance")
_OPEN = (Outcome.UNDECIDED.text, Outcome.NOT_JUDGED.text)
NOT_INTERLEAVED = "The runs of A and B were not interleaved: changes of time, energy and cost include changes of the machine."


def lines(comparison: Comparison) -> list[str]:
    """Return the whole comparison."""
    texts = [*headline(comparison), "", f"A: {comparison.folders[0]}", f"B: {comparison.folders[1]}"]
    without = f", less what {comparison.baseline} changed by, but its own" if comparison.baseline else ""
    texts.append(
        f"{counted(comparison.runs, 'run')} of the same experiments in both; differences are B - A, paired by seed{without}"
    )
    by_reason: dict[str, dict[str, list[str]]] = {}  # why a question of an entry is not compared
    for change in comparison.changes:
        if change.verdict is None:
            by_reason.setdefault(change.reason, {}).setdefault(change.question.name, []).append(change.name)
    blocked = [
        f"{', '.join(questions)} of {', '.join(dict.fromkeys(name for names in questions.values() for name in names))}: {reason}"
        for reason, questions in by_reason.items()
    ]
    ended = [
        f"{run.name} seed {run.seed}: {run.old} in A, {run.new} in B{f': {run.reason}' if run.reason else ''}"
        for run in comparison.ended
    ]
    counts = {mark: comparison.flags[mark.removeprefix("! ")] for mark in marked(comparison.flags)}
    for title, part in (
        ("statuses of the runs:", ended),
        ("bit for bit:", _exact(comparison)),
        ("no change beyond noise:" if comparison.is_judged else "not judged:", _quiet(comparison.changes)),
        ("noise, without any change of version:", _noise(comparison.changes)),
        ("flags, runs in A and in B:", [f"{mark}: {old} and {new}" for mark, (old, new) in counts.items()]),
        ("environment, A and B:", _environment(comparison)),
        ("not compared:", [*blocked, *comparison.left_out]),
    ):
        texts += ["", title, *(f"  {text}" for text in part)] if part else []
    texts += ["", NOT_INTERLEAVED] if comparison.same_machine else []
    return list(map(printable, texts))


def headline(comparison: Comparison) -> Iterator[str]:
    """Yield what changed beyond noise, or that nothing did, or that nothing was judged."""
    if comparison.has_changed:
        yield "changed beyond noise:"
        yield from (f"  {_change(change, comparison)}" for change in comparison.beyond)
        for exact in comparison.unequal:
            values = counted(exact.values, "value")
            yield f"  {exact.name}: {exact.unequal} of {values} of equal configurations differ in their bits"
        for title, runs in (
            ("failed in B and not in A", [run for run in comparison.ended if run.is_failure]),
            ("failed in A and not in B", [run for run in comparison.ended if run.is_recovery]),
            ("ended differently", [run for run in comparison.ended if not (run.is_failure or run.is_recovery)]),
        ):
            if runs:
                yield f"  {title}: {counted(len(runs), 'run')} of {', '.join(dict.fromkeys(run.name for run in runs))}"
        return
    if comparison.is_judged:
        judged = [change for change in comparison.changes if change.outcome not in (None, Outcome.NOT_JUDGED)]
        still = sum(change.verdict.outcome.text not in _OPEN for change in judged if change.verdict is not None)
        yield (
            f"nothing changed beyond noise: {counted(still, 'question')} without a change that matters, "
            f"{len(judged) - still} not decided"
        )
    else:
        yield "nothing is judged: no question has enough seeds in both folders; what can be compared did not change"


def _change(change: Change, comparison: Comparison) -> str:
    assert change.verdict is not None
    word = "better" if change.outcome is Outcome.BETTER else "worse"
    text = f"{change.name}: {change.question.name} is {word}, {seen_text(change.verdict)}"
    notes = [counted(change.verdict.seeds, "seed")]
    if not change.verdict.is_robust:
        why = ": another reasonable choice changes it" if change.verdict.changing else ""
        notes.append(f"{change.verdict.robustness}{why}")
    notes.append(change.verdict.disturbance.text)
    is_noise = any(is_within_noise(change.verdict.interval, noise.interval) for noise in change.noise)
    notes += ["no larger than a framework's difference from itself"] if is_noise else []
    notes += _pool(change, comparison.changes) if comparison.baseline is None else []
    return f"{text} ({'; '.join(notes)})"


def _pool(change: Change, others: Sequence[Change]) -> list[str]:
    """Say that the baseline changed too: then it was the machine, or tuneoff."""
    if change.adapter == POOL:
        return ["the baseline: this is the machine, or tuneoff"]
    for other in others:
        same = other.adapter == POOL and (other.scope, other.question.name) == (change.scope, change.question.name)
        if same and other.outcome is change.outcome and other.verdict is not None:
            return [f"{POOL}, the baseline, changed too: {seen_text(other.verdict)}"]
    return []


def _quiet(changes: Sequence[Change]) -> list[str]:
    """Return a table of the questions that did not change beyond noise, then why what is open is open."""
    quiet = [change for change in changes if change.verdict is not None and not change.is_beyond_noise]
    if not quiet:
        return []
    rows, reasons = [], dict[str, None]()
    for change in quiet:
        assert change.verdict is not None
        word = _word(change.verdict)
        size, differences = seen_text(change.verdict), [pair.difference for pair in change.verdict.differences]
        values = [difference for difference in differences if difference is not None]
        if change.verdict.interval is None and len(values) == 1 and not any(change.verdict.failures):
            size = f"{signed(values[0], change.question)} in 1 seed"
        rows.append((change.name, change.question.name, word, size))
        if word in _OPEN:
            reasons[f"{word}: {change.reason}"] = None
    return [*columns(("framework", "question", "verdict", "B against A"), rows, margin=2).splitlines(), *reasons]


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
        for noise in change.noise:
            row = rows.setdefault((change.scope.text, change.question.name, noise.pair), {})
            row[noise.side] = difference_text(noise.interval, change.question)
    table = [(*names, row.get("A", MISSING), row.get("B", MISSING)) for names, row in rows.items()]
    return columns(("scope", "question", "repeated entry", "in A", "in B"), table, margin=2).splitlines() if table else []


def _exact(comparison: Comparison) -> list[str]:
    texts = []
    for exact in comparison.exact:
        old, new = exact.tried
        tried = f"both tried {exact.configurations} of A's {old} and B's {new} configurations"
        if not exact.values:
            texts.append(f"{exact.name}: no configuration in common; {tried}")
        elif not exact.unequal:
            texts.append(f"{exact.name}: all {exact.values} values equal; {tried}")
        else:
            due = "" if exact.is_due else " (expected: another machine)"
            texts.append(
                f"{exact.name}: {exact.unequal} of {exact.values} values unequal{due}, the first: {exact.example}; {tried}"
            )
    return texts


def _environment(comparison: Comparison) -> list[str]:
    texts = [] if comparison.same_machine else ["another machine, so no time, energy or cost is compared"]
    texts += environment_table(comparison.environment, "in A", "in B").splitlines() if comparison.environment else []
    texts += [f"analysis.{name}: {old} and {new}: judged by A's" for name, (old, new) in comparison.analysis.items()]
    if comparison.sentinel is not None:
        texts.append(
            f"a fixed calculation before each run took {figure(comparison.sentinel)} times as long in B as in A, by medians"
        )
    return texts


def to_json(comparison: Comparison) -> dict[str, Any]:
    """Return everything that the text says, and each pair of seeds, for `write_json`."""
    return {
        **values(comparison, ("has_changed", "runs", "same_machine", "baseline", "environment", "analysis", "exact", "flags")),
        "answer": list(headline(comparison)),
        "a": comparison.folders[0].resolve(),
        "b": comparison.folders[1].resolve(),
        "sentinel_ratio": comparison.sentinel,
        "changes": [
            {
                "of": change.name,
                "question": change.question.name,
                **values(change.question, ("metric", "unit", "scale", "margin"), {"margin": change.question.margin_text}),
                **values(change, ("adapter", "is_beyond_noise", "reason", "noise", "outcome"), {"outcome": change.reason}),
                "differences": (),
                **(
                    dict.fromkeys(_OF_VERDICT)
                    if change.verdict is None
                    else values(change.verdict, (*_OF_VERDICT, "differences"))
                ),
            }
            for change in comparison.changes
        ],
        "ended": [{**field_values(run), **values(run, ("is_failure", "is_recovery"))} for run in comparison.ended],
        "not_compared": comparison.left_out,
    }
