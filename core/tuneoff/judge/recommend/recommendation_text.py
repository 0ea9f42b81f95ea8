"""A recommendation as lines for people: who or why nobody first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from tuneoff.base.commands import command
from tuneoff.base.format import counted, figure, listed
from tuneoff.base.output import printable
from tuneoff.experiment.names import with_pruner
from tuneoff.experiment.spec import LOCAL
from tuneoff.judge.answers.judging import FEWEST_SEEDS
from tuneoff.judge.choice.deciding import more_seeds
from tuneoff.judge.recommend.families import place_text
from tuneoff.judge.recommend.recommendation import Against, Cited, Family, Outside, Reason, Recommendation
from tuneoff.judge.recommend.request import TRIAL_SECONDS, TRIALS, WORKERS, Request, size_text, spans
from tuneoff.judge.runs import POOL

_TRIAL = "the workload so that a trial takes about {} s"
LIMIT = "It holds for these experiments, on that machine and in those versions; nothing is said beyond them."


def lines(recommendation: Recommendation, *, with_runs: bool = False) -> list[str]:
    """Return the answer first, below whether it is unfinished; then what was measured, who was left out, and the runs."""
    citations = _Citations(with_runs)
    waiting = {folder: one.text for folder, one in recommendation.unfinished.items()}
    several = len(recommendation.folders) > 1
    found = [f"unfinished: {text}{f' in {folder}' if several else ''}; the answer may change" for folder, text in waiting.items()]
    for choice in recommendation.choices:
        warnings = [text for text in choice.short_warnings if text.rstrip(".") not in waiting.values()]
        found += [*choice.lines, *(f"! {text}" for text in warnings), ""]
    found += [*recommendation.headline, ""]
    asked = recommendation.request.names()
    found.append(f"asked for: {', '.join(asked) if asked else _of_files(recommendation)}")
    for family in recommendation.families:
        found += ["", *_family(family, citations)]
    found += _people(recommendation)
    advice = list(how_to_measure(recommendation))
    found += ["", *advice] if advice else []
    found += ["", *citations.lines()] if citations.known else []
    found += ["", LIMIT] if recommendation.families else []
    return list(map(printable, found))


def _of_files(recommendation: Recommendation) -> str:
    """Return what the files asked for themselves, where that was measured."""
    measured = [one.setting for family in recommendation.families for one in family.weighed]
    if not measured:
        return "nothing in particular"
    names = [f"sampler {with_pruner(one.scope.sampler, one.scope.pruner)}" for one in measured]
    sizes = [size_text(name, ends) for name, ends in spans([one.sizes for one in measured]).items()]
    return f"nothing beyond the file: {', '.join([*dict.fromkeys(names), *sizes])}"


class _Citations:
    """The numbers in brackets, in the order in which they are first used; without `with_runs` only how many runs there are."""

    def __init__(self, with_runs: bool) -> None:
        self.known: dict[tuple[Cited, ...], int] = {}
        self._with_runs = with_runs

    def mark(self, reason: Reason) -> str:
        if not reason.runs:
            return reason.text
        number = self.known.setdefault(reason.runs, len(self.known) + 1)
        return f"{reason.text} [{number}]" if self._with_runs else reason.text

    def lines(self) -> Iterator[str]:
        if not self._with_runs:
            counts = Counter(run.folder for run in dict.fromkeys(run for runs in self.known for run in runs))
            yield from (f"rests on {counted(count, 'run')} in {folder}; --runs lists them" for folder, count in counts.items())
            return
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
        yield f"  {place_text(one.setting)}: {'remains' if len(one.front) == 1 else 'remain'}: {front}"
        for dominance in one.dominances:
            if dominance.other not in one.front:
                rest = f", as good in {', '.join(dominance.as_good)}" if dominance.as_good else ""
                yield f"    {dominance.one} dominates {dominance.other}: better in {', '.join(dominance.better)}{rest}"
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


def headline(recommendation: Recommendation) -> Iterator[str]:
    """Yield the answer, one line per workload, sampler and pruner; a clear refusal where there is none."""
    if not recommendation.capable:
        yield "no framework meets the constraints"
        return
    for family in recommendation.families:
        yield f"{family.name}: {_of_family(family)}"
        yield from (f"  {text}" for text in _below(family, recommendation.request))
    if recommendation.families:
        return
    if recommendation.outside:
        yield "not measured, so nothing is said: " + _asked(recommendation.request)
        for one in recommendation.outside:
            yield _outside(one, recommendation.request)
        return
    names = listed(recommendation.not_measured)
    was = "was not" if len(recommendation.not_measured) == 1 else "were not"
    yield f"{names} can do what is asked for, but {was} measured at it, so nobody is recommended"
    for seen in recommendation.on_stand_ins:
        yield f"{seen.label} has {counted(seen.runs, 'run')}, on a stand-in for its platform: they recommend nothing"


def how_to_measure(recommendation: Recommendation) -> Iterator[str]:
    """Yield which file to run, and with what, for what is not measured."""
    own = [file for file, results in recommendation.files.items() if not results.plan.is_of_bundle]
    for one in recommendation.outside:
        for file in one.files:
            if file in own:
                yield f"to measure it: {_measuring(recommendation, file, one.beyond or tuple(recommendation.request.asked))}"
    if recommendation.not_measured and not recommendation.outside:
        yield from (f"to measure what was not: {_measuring(recommendation, file, ())}" for file in own)


def _measuring(recommendation: Recommendation, file: str, sizes: Sequence[str]) -> str:
    """Return the command that measures at the asked sizes with enough seeds, and what to change in the file first."""
    request, results = recommendation.request, recommendation.files[file]
    changes = list(recommendation.lacking) + (
        [_TRIAL.format(figure(request.asked[TRIAL_SECONDS]))] if TRIAL_SECONDS in sizes else []
    )
    changes += [f"sampler: {name}" for name in results.plan.options.get("--sampler", ()) if request.sampler is None]
    lacking = list(map(_real_name(recommendation), recommendation.not_measured))
    names = [*recommendation.measured, *lacking]
    for adapter, _, platform in (name.partition("@") for name in lacking if "@" in name):
        shown = command("adapters", adapter)
        changes.append(f"an entry {{name: {adapter}, platform: {platform}, options: ...}} ({shown} tells which)")
    replaced: dict[str, Sequence[object]] = {"adapter": names}
    replaced |= {name: (f"{request.asked[name]:g}",) for name in (TRIALS, WORKERS) if name in sizes}
    if len(results.plan.seeds) - len(results.plan.added_seeds) < FEWEST_SEEDS:
        replaced["seeds"] = more_seeds(results.plan, FEWEST_SEEDS)
    compare = results.plan.compare_command(results.folder, **replaced)
    return f"set {' and '.join(changes)} in {file}, then: {compare}" if changes else compare


def _real_name(recommendation: Recommendation) -> Callable[[str], str]:
    """Return how an adapter is named on the first platform that is real and asked for."""
    platforms = {one.adapter: one.platforms for one in recommendation.candidates}

    def name(adapter: str) -> str:
        own = platforms.get(adapter, ())
        return adapter if LOCAL in own or not own else f"{adapter}@{own[0]}"

    return name


def _of_family(family: Family) -> str:
    names = listed(family.recommended)
    judged = [one for one in family.weighed if one.is_judged]
    labels = {label for one in family.weighed for label in one.setting.labels}
    if not family.recommended:
        if family.differs or family.dominated:
            return "the measured settings disagree, so nobody is recommended: see below"
        return "nobody was measured on all sides of the request, so nobody is recommended: see below"
    if len(labels) == 1:
        return f"{names} is the only one that can and was measured; there is no other to compare it with"
    if len(family.recommended) == 1:
        others = labels - set(family.recommended)
        dominated = [label for label in family.dominated if label in others]
        if len(dominated) == len(others):
            return f"{names}; {listed(dominated)} {_be(dominated)} dominated"
        return f"{names}; of the others the measured settings say different things: see below"
    if not judged:
        what = "nothing is judged" if len(family.weighed) == 1 else "no setting is judged by itself"
        return f"{what}, so nobody is ruled out and {names} remain: too few seeds, or no pair has figures to compare"
    if all(one.is_indifferent for one in family.weighed):
        return f"no difference that matters between {names}"
    if _apart(family):
        return f"{names} remain"
    questions = list(dict.fromkeys(name for one in family.weighed for name in one.undecided))
    return f"not decided between {names}" + (f" in {listed(questions)}" if questions else "")


def _below(family: Family, request: Request) -> Iterator[str]:
    """Yield what was shown between those that remain, what that means, and how more would be shown or explained."""
    behind: dict[tuple[object, ...], list[Against]] = {}
    for pair in family.against:
        key = (pair.other, pair.worse, pair.undecided, pair.is_everywhere, pair.failed_less)
        behind.setdefault((*key, pair.one, pair.better) if pair.better else key, []).append(pair)
    for pairs in behind.values():
        yield _against(pairs[0], [pair.one for pair in pairs])
    if _apart(family):
        yield "who remains: no other was shown to be better in something, as good in all else, and to fail no more often"
    for name, text in family.without_margin.items():
        yield f"{name}: {text}: without it nobody can be shown to be as good"
    several = len(family.recommended) > 1 and not all(one.is_indifferent for one in family.weighed)
    if several and request.prefer is None and any(one.is_judged for one in family.weighed):
        yield f"--prefer {family.weighed[0].setting.answers.questions[0].name} explains that question first; it ranks nothing"


def _apart(family: Family) -> list[Against]:
    """Return what was shown between those that remain."""
    return [pair for pair in family.against if {pair.one, pair.other} <= set(family.recommended)]


def _against(pair: Against, ones: Sequence[str]) -> str:
    *names, other = [f"{name} (no framework)" if name == POOL else name for name in (*ones, pair.other)]
    if pair.better:
        text = f"{names[0]} is better in {listed(pair.better)}, {other} in {listed(pair.worse)}"
    else:
        text = f"{listed(names)} {_be(names)} worse than {other} in {listed(pair.worse)}, and better in nothing"
    only = "only " if len(pair.undecided) == 1 else ""
    text += f"; {only}{listed(pair.undecided)} {_be(pair.undecided)} not decided" if pair.undecided else ""
    text += f", but {other} failed more often" if pair.failed_less and not pair.better else ""
    return text if pair.is_everywhere else f"{text} (not in each setting)"


def _be(names: Sequence[str]) -> str:
    return "is" if len(names) == 1 else "are"


def _outside(one: Outside, request: Request) -> str:
    measured = ", ".join(size_text(name, ends) for name, ends in one.measured)
    if one.beyond:
        return f"{one.family}: measured were {measured}"
    return f"{one.family}: measured were {measured}, but no settings that surround this combination"


def _asked(request: Request) -> str:
    return ", ".join(size_text(name, (value, value)) for name, value in request.asked.items())
