"""What every plot needs of a results folder: the runs of a group, the scopes that are shown, styles, incumbents."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from tuneoff.base.format import counted
from tuneoff.experiment.names import label_texts
from tuneoff.judge.answers.answer import Answers, EstimatedGroup, Question
from tuneoff.judge.answers.anytime import Curve, curves
from tuneoff.judge.answers.runtimes import Runtimes, runtimes
from tuneoff.judge.results import Results
from tuneoff.judge.runs import Run, Scope, grouped
from tuneoff.record.metric_value import Kind
from tuneoff.tell.plots.texts import shown
from tuneoff.tell.plots.theme import Style, styles

FEW_SCOPES, MOST_SCOPES = 4, 12
LABEL = 28  # letters of an adapter's name


@dataclass(frozen=True, slots=True)
class View:
    """Results and answers, prepared for plots."""

    results: Results
    answers: Answers
    styles: dict[str, Style]
    _runs: dict[str, Run] = field(default_factory=dict)
    _curves: list[Curve] = field(default_factory=list)
    _runtimes: list[Runtimes] = field(default_factory=list)

    @classmethod
    def of(cls, results: Results, answers: Answers) -> View:
        """Return the view of a folder."""
        texts = _texts(answers.groups)
        found = styles((group.label, texts[group.label], group.replicate, group.emulated) for group in answers.groups)
        view = cls(results, answers, found)
        view._runs.update((run.ref.run_id, run) for group in grouped(results) for run in group.runs)
        return view

    def style(self, label: str) -> Style:
        """Return how an adapter is drawn."""
        return self.styles[label]

    def label(self, label: str) -> str:
        """Return an adapter's label in full, for tables."""
        return shown(label)

    def runs(self, group: EstimatedGroup) -> tuple[Run, ...]:
        """Return the runs of a group in the plan's order."""
        return tuple(self._runs[ref.run_id] for ref in group.runs)

    def groups(self, scope: Scope) -> list[EstimatedGroup]:
        """Return the groups of a scope; one that is the same as another is left out."""
        return [group for group in self.answers.groups if group.scope == scope and group.same_as is None]

    def scopes(self, most: int = MOST_SCOPES) -> tuple[list[Scope], str]:
        """Return the scopes to show, those with the most runs that ended, in the file's order, and what was left out."""
        sizes = {
            scope: sum(run.status in ("done", "failed", "timeout") for group in self.groups(scope) for run in group.runs)
            for scope in self.answers.scopes
        }
        there = [scope for scope, size in sizes.items() if size]
        kept = set(sorted(there, key=lambda scope: -sizes[scope])[:most])
        left_out = len(there) - len(kept)
        note = f"Shown are {len(kept)} of {len(there)} scopes: those with the most runs." if left_out > 0 else ""
        return [scope for scope in there if scope in kept], note

    def curves(self, scope: Scope) -> dict[str, list[Curve]]:
        """Return the incumbents of the runs of a scope that ended, by adapter."""
        found: dict[str, list[Curve]] = {}
        for curve in self._every_curve():
            if curve.scope == scope:
                found.setdefault(curve.label, []).append(curve)
        return found

    def runtimes(self, scope: Scope) -> list[Runtimes]:
        """Return the runtimes to targets of the groups of a scope."""
        if not self._runtimes:
            self._runtimes.extend(runtimes(self.results, self._every_curve()))
        return [one for one in self._runtimes if one.scope == scope]

    def _every_curve(self) -> list[Curve]:
        if not self._curves:
            self._curves.extend(curves(self.results))
        return self._curves

    def question(self, name: str) -> Question | None:
        """Return the question of a name."""
        return next((question for question in self.answers.questions if question.name == name), None)

    def representative(self) -> Iterator[tuple[EstimatedGroup, Run, str]]:
        """Yield a run per adapter, and why this one: of its first scope that has one, done, its time nearest to the median.

        Adapters are taken in the scope that most of them have in common, so that what is shown side by side is comparable.
        """
        scopes, _ = self.scopes(1)
        order = [*scopes, *(scope for scope in self.answers.scopes if scope not in scopes)]
        seen: set[str] = set()
        for scope in order:
            for group in self.groups(scope):
                run = _nearest(self.runs(group)) if group.label not in seen else None
                if run is not None:
                    seen.add(group.label)
                    yield group, run, f"seed {run.ref.seed} of {shown(scope.text)}"


def most_note(view: View, most: int) -> str:
    """Return one sentence where not every adapter is shown; "" where each is."""
    labels = {group.label for group in view.answers.groups if group.same_as is None}
    return f"Of {len(labels)} adapters the first {most} are shown." if len(labels) > most else ""


WHY = "Of each adapter the run is shown whose completion time is nearest to its median"


def _texts(groups: Sequence[EstimatedGroup]) -> dict[str, str]:
    """Return the text of each label, shortened where it stays unique."""
    texts = {label: shown(text) for label, text in label_texts((group.label, group.adapter) for group in groups).items()}
    short = {label: shown(text, LABEL) for label, text in texts.items()}
    times = Counter(short.values())
    return {label: text if times[text] == 1 else texts[label] for label, text in short.items()}


def run_name(view: View, group: EstimatedGroup, run: Run) -> str:
    """Return a single run's name: `optuna, seed 3`."""
    return f"{view.style(group.label).label}, seed {run.ref.seed}"


def tried(runs: Sequence[Run]) -> list[Run]:
    """Return the runs that count in a comparison: done, or failed."""
    return [run for run in runs if run.is_done or run.ref.is_failure]


def kinds_text(kinds: Sequence[Kind | None]) -> str:
    """Return the kinds of values as text: "estimated", "measured and estimated"."""
    return " and ".join(dict.fromkeys(kind for kind in kinds if kind is not None))


def missing_note(count: int, why: str) -> str:
    """Return one sentence on what is not drawn; "" for nothing."""
    return f"{counted(count, 'run')} without a value: {why}." if count else ""


def _nearest(runs: Sequence[Run]) -> Run | None:
    done = [run for run in runs if run.is_done and run.record is not None and run.record.trials]
    timed = [(run, run.value("time.jct_without_test")) for run in done]
    times = [value for _, value in timed if value is not None]
    if not times:
        return done[0] if done else None
    middle = statistics.median_low(times)
    return min(timed, key=lambda item: (item[1] is None, abs((item[1] or 0) - middle), item[0].ref.seed))[0]
