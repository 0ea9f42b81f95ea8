"""Configurations as Ray's random search hands them over, without an instance of Ray. Imports Ray."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ray.tune.experiment import Experiment
from ray.tune.search.sample import Categorical, Float, Integer

from tuneoff.experiment.translation import FrameworkSpace, translation_of
from tuneoff.record.run_context import RunContext
from tuneoff_adapters.ray_tune.config_keys import TASK
from tuneoff_adapters.ray_tune.searchers import make_search, param_space
from tuneoff_adapters.ray_tune.submission import Submissions
from tuneoff_adapters.ray_tune.trainable import TrialTrainable


def draw(context: RunContext, count: int) -> Iterator[Mapping[str, object]]:
    """Yield the configurations of `count` trials, each of which is told to be over at once."""
    spec = context.spec
    translation = translation_of(spec)
    submissions = Submissions(context, translation)
    search = make_search(spec, submissions)
    experiment = Experiment(
        "draws",
        TrialTrainable,
        config=param_space(translation, submissions.keys),
        num_samples=count,
        storage_path=str(context.work_dir),
    )
    search.add_configurations([experiment])
    for _ in range(count):
        trial = search.next_trial()
        if trial is None:
            return
        yield trial.config[TASK]["configuration"]
        search.on_trial_complete(trial.trial_id)


def framework_space(context: RunContext) -> FrameworkSpace:
    """Return the space as Ray has it, under the space's own names."""
    translation = translation_of(context.spec)
    submissions = Submissions(context, translation)
    domains = param_space(translation, submissions.keys)
    ends = {name: _ends(domains[key]) for key, name in submissions.keys.items()}
    names = {name: key for key, name in submissions.keys.items()}

    def decode(values: Mapping[str, Any]) -> dict[str, Any]:
        return submissions.decode({names[name]: value for name, value in values.items()})

    return FrameworkSpace(ends=ends, decode=decode, encode=translation.encode)


def _ends(domain: Any) -> tuple[Any, Any]:
    if isinstance(domain, Categorical):
        return domain.categories[0], domain.categories[-1]
    if isinstance(domain, Integer):
        return domain.lower, domain.upper - 1  # Ray draws integers below `upper`
    assert isinstance(domain, Float)
    return domain.lower, domain.upper
