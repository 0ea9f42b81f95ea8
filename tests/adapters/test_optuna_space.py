"""What Optuna's random sampler draws from the translated space, against core's distributions."""

from __future__ import annotations

import optuna
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapters.framework_objects import plan_of
from builders.spaces import SPACE, spaces, units
from builders.specs import toy_spec
from contract.space import Drawn, SpaceContract
from tuneoff.base.identity import canonical_json
from tuneoff.base.space import SearchSpace
from tuneoff.experiment.translation import SpaceTranslation
from tuneoff_adapters.optuna.distributions import distributions
from tuneoff_adapters.optuna.samplers import make_sampler

DRAWS = 3000


@pytest.mark.slow
class TestSpace(SpaceContract):
    @pytest.fixture(scope="module")
    @classmethod
    def drawn(cls) -> Drawn:
        """3000 configurations by one sampler; over several studies, because an ask looks through all trials of its study."""
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        translation = SpaceTranslation(SPACE)
        sampler, native = make_sampler(plan_of(toy_spec("optuna", space=SPACE)), worker=0), distributions(translation.native)
        configurations = []
        for _ in range(DRAWS // 500):
            study = optuna.create_study(sampler=sampler)
            configurations += [translation.decode(study.ask(native).params) for _ in range(500)]
        return SPACE, configurations


@settings(max_examples=50, deadline=None)
@given(spaces(), st.data())
def test_an_enqueued_configuration_survives_the_way_through_optuna(space: SearchSpace, data: st.DataObject) -> None:
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    translation = SpaceTranslation(space)
    configuration = space.from_units(data.draw(units(space)))
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    study.enqueue_trial(dict(translation.encode(configuration)))
    trial = study.ask(distributions(translation.native))
    assert canonical_json(translation.decode(trial.params)) == canonical_json(configuration)
