"""A recommendation as lines for people."""

from __future__ import annotations

from collections.abc import Iterator

from tuneoff.base.format import counted
from tuneoff.base.output import printable
from tuneoff.judge.recommend.families import place_text
from tuneoff.judge.recommend.headline import how_to_measure
from tuneoff.judge.recommend.recommendation import Cited, Family, Reason, Recommendation

LIMIT = "It holds for these experiments, on that machine and in those versions; nothing is said beyond them."


def lines(recommendation: Recommendation) -> list[str]:
    """Return the answer first, then what was measured, who was left out, and the runs."""
    citations = _Citations()
    chosen = [[*choice.lines, *(f"! {text}" for text in choice.caveats), ""] for choice in recommendation.choices]
    found = [*(line for lines in chosen for line in lines), *recommendation.headline, ""]
    asked = recommendation.request.names()
    found.append(f"asked for: {', '.join(asked) if asked else 'nothing in particular: all that was measured'}")
    for family in recommendation.families:
        found += ["", *_family(family, citations)]
    found += _people(recommendation)
    advice = list(how_to_measure(recommendation))
    found += ["", *advice] if advice else []
    found += ["", *citations.lines()] if citations.known else []
    found += ["", LIMIT] if recommendation.families else []
    return list(map(printable, found))


class _Citations:
    """The numbers in brackets, in the order in which they are first used."""

    def __init__(self) -> None:
        self.known: dict[tuple[Cited, ...], int] = {}

    def mark(self, reason: Reason) -> str:
        if not reason.runs:
            return reason.text
        return f"{reason.text} [{self.known.setdefault(reason.runs, len(self.known) + 1)}]"

    def lines(self) -> Iterator[str]:
        yield "runs that this rests on:"
        for runs, number in self.known.items():
            for folder in dict.fromkeys(run.folder for run in runs):
                ids = [run.run_id for run in runs if run.folder == folder]
                yield f"  [{number}] {counted(len(ids), 'run')} in {folder}/runs: {' '.join(ids)}"


def _family(family: Family, citations: _Citations) -> Iterator[str]:
    where = "measured at what was asked for" if family.is_exact else "measured around what was asked for, nothing beyond"
    yield f"{family.name}, {where}:"
    for one in family.weighed:
        front = ", ".join(one.front)
        yield f"  {place_text(one.setting)}: on the front: {front}"
        for dominance in one.dominances:
            if dominance.other not in one.front:
                better = ", ".join(verdict.question.name for verdict in dominance.better)
                as_good = ", ".join(verdict.question.name for verdict in dominance.as_good)
                rest = f", as good in {as_good}" if as_good else ""
                yield f"    {dominance.one} dominates {dominance.other}: better in {better}{rest}"
        yield from (f"    {citations.mark(reason)}" for reason in one.reasons)
    yield from (f"  {citations.mark(reason)}" for reason in family.differs)
    yield from (f"  {text}" for text in family.unmeasured)


def _people(recommendation: Recommendation) -> Iterator[str]:
    """Yield who is left out and why, who can and was not measured, and what is to know of the others."""
    if recommendation.excluded:
        yield from ("", "left out:")
        for one in recommendation.excluded:
            for obstacle in one.obstacles:
                yield f"  {one.adapter}: {obstacle.kind.value}: {obstacle.text}"
    stand_ins = {one.adapter: one for one in recommendation.on_stand_ins}
    if recommendation.not_measured:
        yield from ("", "can, but not measured there:")
        for name in recommendation.not_measured:
            seen = stand_ins.get(name)
            text = f": {seen.label} has {counted(seen.runs, 'run')}, on a stand-in: they recommend nothing" if seen else ""
            yield f"  {name}{text}"
    notes = [f"  {one.adapter}: {note}" for one in recommendation.capable for note in one.notes]
    if notes:
        yield from ("", "to know:", *notes)
