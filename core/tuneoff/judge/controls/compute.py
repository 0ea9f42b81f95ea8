"""All controls of a results folder."""

from __future__ import annotations

from dataclasses import dataclass

from tuneoff.base.packages import need_scipy
from tuneoff.errors import MissingPackageError
from tuneoff.experiment.analysis_part import AnalysisPart
from tuneoff.judge.answers.analysis_plan import frozen
from tuneoff.judge.controls.effects import Effect, effects, is_subtractable
from tuneoff.judge.controls.same_algorithm import EntryPair, comparable, pairs_of, warnings
from tuneoff.judge.controls.same_configuration import Equality, SameConfiguration, same_configurations
from tuneoff.judge.controls.settings import settings
from tuneoff.judge.results import Results
from tuneoff.judge.runs import grouped

_DEFAULTS = AnalysisPart()


@dataclass(frozen=True, slots=True, kw_only=True)
class Controls:
    """What the controls of a matrix say. `lacking`: why the statistical ones could not be made, where a package is missing."""

    same_configurations: tuple[SameConfiguration, ...] = ()
    pairs: tuple[EntryPair, ...] = ()
    effects: tuple[Effect, ...] = ()
    confidence: float = _DEFAULTS.confidence
    lacking: str | None = None

    @property
    def alpha(self) -> float:
        return 1 - self.confidence

    @property
    def is_empty(self) -> bool:
        """Whether the matrix has nothing that a control could compare."""
        return not (self.same_configurations or self.pairs or self.effects or self.lacking)

    @property
    def contradicts(self) -> bool:
        """Whether a control says that the adapters were not treated equally: unequal bits, or quality outside its margin."""
        different = any(one.answer is Equality.DIFFERENT for one in self.same_configurations)
        return different or bool(warnings(self.pairs))


def controls(results: Results) -> Controls:
    """Return the controls of a matrix, by the analysis that its plan froze.

    Where scipy is missing, what needs it is left out and `lacking` says so.
    """
    analysis = results.plan.analysis
    plan = frozen(analysis)
    confidence = plan.confidence
    found = settings(grouped(results))
    same = tuple(same_configurations(found))
    if comparable(found) or is_subtractable(found):
        try:
            need_scipy("the comparison of scores and quality")
        except MissingPackageError as error:
            return Controls(same_configurations=same, confidence=confidence, lacking=str(error))
    return Controls(
        same_configurations=same,
        pairs=tuple(pairs_of(found, analysis, 1 - confidence)),
        effects=tuple(effects(found, plan.questions[plan.primary], confidence)),
        confidence=confidence,
    )
