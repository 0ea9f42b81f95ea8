"""Native types of Syne Tune: of its own integers two draw by other distributions than core's."""

from __future__ import annotations

from typing import Any

import numpy
import pytest
from syne_tune.config_space import lograndint, qrandint

from builders.spaces import SPACE
from tuneoff.base.space import IntegerLog, SearchSpace, stepped
from tuneoff.experiment.translation import SpaceTranslation
from tuneoff.trust.space_test.judge import Sample, judge
from tuneoff_adapters.syne_tune.schedulers import domains


@pytest.mark.parametrize(
    ("domain", "dimension"),
    [(lograndint(1, 8), IntegerLog(low=1, high=8)), (qrandint(16, 64, 16), stepped(16, 64, 16, integer=True))],
    ids=["logarithmic", "quantized"],
)
def test_syne_tunes_own_integers_would_be_rejected(domain: Any, dimension: Any) -> None:
    numpy.random.seed(1)
    drawn = [{"x": int(domain.sample())} for _ in range(4000)]
    assert judge(SearchSpace({"x": dimension}), Sample(by_seed={0: drawn})).verdict == "rejected"


def test_native_types_are_syne_tunes_exact_ones() -> None:
    text = {name: str(domain) for name, domain in domains(SpaceTranslation(SPACE).native).items()}
    assert text["integer"] == "randint(0, 3)"
    assert text["unordered"] == "choice([0, 1, 2, 3])"
    assert text["log_integer"] == "loguniform(0.5, 8.5)"
    assert "constant" not in text
