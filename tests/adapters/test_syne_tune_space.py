"""What Syne Tune's random search draws from the translated space, against core's distributions."""

from __future__ import annotations

import numpy
import pytest
from syne_tune.config_space import lograndint, qrandint

from builders.spaces import SPACE
from builders.specs import toy_spec
from contract.space import Drawn, SpaceContract, uniformity
from tuneoff.base.space import IntegerLog
from tuneoff.experiment.translation import SpaceTranslation, translation_of
from tuneoff_adapters.syne_tune.schedulers import domains, make_scheduler

DRAWS = 4000


class TestSpace(SpaceContract):
    @pytest.fixture(scope="module")
    @classmethod
    def drawn(cls) -> Drawn:
        spec = toy_spec("syne-tune", space=SPACE)
        translation = translation_of(spec)
        scheduler = make_scheduler(spec, translation)
        return SPACE, [translation.decode(scheduler.suggest().config) for _ in range(DRAWS)]

    def test_a_configuration_survives_the_way_there_and_back(self, drawn: Drawn) -> None:
        translation = SpaceTranslation(SPACE)
        for configuration in drawn[1][:200]:
            assert translation.decode(translation.encode(configuration)) == configuration


def test_syne_tunes_own_log_integer_would_be_caught() -> None:
    numpy.random.seed(1)
    values = [lograndint(1, 8).sample() for _ in range(DRAWS)]
    assert uniformity(values, range(1, 9), IntegerLog(low=1, high=8).probability) < 1e-12


def test_syne_tunes_own_quantized_integer_would_be_caught() -> None:
    numpy.random.seed(1)
    assert uniformity([qrandint(16, 64, 16).sample() for _ in range(DRAWS)], [16, 32, 48, 64]) < 1e-12


def test_native_types_are_syne_tunes_exact_ones() -> None:
    text = {name: str(domain) for name, domain in domains(SpaceTranslation(SPACE).native).items()}
    assert text["integer"] == "randint(0, 3)"
    assert text["unordered"] == "choice([0, 1, 2, 3])"
    assert text["log_integer"] == "loguniform(0.5, 8.5)"
    assert "constant" not in text
