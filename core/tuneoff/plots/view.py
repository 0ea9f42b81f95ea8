"""What every plot needs of a results folder: the runs of a group, the scopes that are shown, styles, incumbents."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from tuneoff.answers.anytime import Curve, curves
from tuneoff.answers.model import Answers, Group, Question, RunRef, Scope
from tuneoff.answers.results import Results
from tuneoff.answers.runtimes import Runtimes, runtimes
from tuneoff.experiment.names import label_texts
from tuneoff.experiment.spec import Objective, RunSpec
from tuneoff.metrics.values import Kind, MetricValue
from tuneoff.plots.theme import Style, styles
from tuneoff.plots.words import shown
from tuneoff.records.model import RunRecord
from tuneoff.words import counted

FEW_SCOPES, MOST_SCOPES = 4, 12
LABEL = 28  # letters of an adapter's name


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A planned run with its record; `record` is None where it never started."""

    ref: RunRef
    record: RunRecord | None

    @property
    def is_done(self) -> bool:
        return self.ref.status == "done" and self.record is not None

    def metric(self, name: str) -> MetricValue | None:
        """Return a metric of the run, None where it has no such one."""
        return None if self.record is None else self.record.metrics.get(name)

    def value(self, name: str) -> float | None:
        """Return a metric's value of a run that is done, None where it has none."""
        found = self.metric(name)
        return found.value if found is not None and self.is_done else None

    def kind(self, name: str) -> Kind | None:
        found = self.metric(name)
        return found.kind if found is not None and found.value is not None else None


@dataclass(frozen=True, slots=True)
class View:
    """Results and answers, prepared for plots."""

    results: Results
    answers: Answers
    styles: dict[str, Style]
    _specs: dict[str, RunSpec] = field(default_factory=dict)
    _curves: list[Curve] = field(default_factory=list)
    _runtimes: list[Runtimes] = field(default_factory=list)

    @classmethod
    def of(cls, results: Results, answers: Answers) -> View:
        """Return the view of a folder."""
        texts = _texts(answers.groups)
        found = styles((group.label, texts[group.label], group.replicate, group.emulated) for group in answers.groups)
        view = cls(results, answers, found)
        view._specs.update((run.run_id, run.spec) for run in results.planned)
        return view

    def style(self, label: str) -> Style:
        """Return how an adapter is drawn."""
        return self.styles[label]

    def label(self, label: str) -> str:
        """Return an adapter's label in full, for tables."""
        return shown(label)

    def runs(self, group: Group) -> tuple[Run, ...]:
        """Return the runs of a group in the plan's order."""
        return tuple(Run(ref=ref, record=self.results.standing.get(ref.run_id)) for ref in group.runs)

    def groups(self, scope: Scope) -> list[Group]:
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

    def objective(self, run: Run) -> Objective:
        """Return what a run optimizes."""
        return self.spec(run).experiment.objective

    def spec(self, run: Run) -> RunSpec:
        found = self._specs.get(run.ref.run_id)
        if found is None:
            assert run.record is not None
            found = self._specs[run.ref.run_id] = run.record.run_spec()
        return found

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

    def representative(self) -> Iterator[tuple[Group, Run, str]]:
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


def _texts(groups: Sequence[Group]) -> dict[str, str]:
    """Return the text of each label, shortened where it stays unique."""
    texts = {label: shown(text) for label, text in label_texts((group.label, group.adapter) for group in groups).items()}
    short = {label: shown(text, LABEL) for label, text in texts.items()}
    times = Counter(short.values())
    return {label: text if times[text] == 1 else texts[label] for label, text in short.items()}


def run_name(view: View, group: Group, run: Run) -> str:
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
    timed = [(run, run.value("time.jct")) for run in done]
    times = [value for _, value in timed if value is not None]
    if not times:
        return done[0] if done else None
    middle = statistics.median_low(times)
    return min(timed, key=lambda item: (item[1] is None, abs((item[1] or 0) - middle), item[0].ref.seed))[0]
