"""Checks of what a user may set for this adapter; imports no framework."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tuneoff.experiment.space import Categorical
from tuneoff.experiment.spec import RunSpec
from tuneoff.suggest import nearest


@dataclass(frozen=True, slots=True)
class _Integer:
    least: int

    def refuse(self, value: Any) -> str | None:
        is_right = isinstance(value, int) and not isinstance(value, bool) and value >= self.least
        return None if is_right else f"an integer >= {self.least}"


@dataclass(frozen=True, slots=True)
class _Flag:
    def refuse(self, value: Any) -> str | None:
        return None if isinstance(value, bool) else "true or false"


SAMPLER_OPTIONS: Mapping[str, Mapping[str, _Integer | _Flag]] = {
    "tpe": {
        "n_startup_trials": _Integer(1),
        "n_ei_candidates": _Integer(1),
        "multivariate": _Flag(),
        "constant_liar": _Flag(),
    },
    "gp": {"n_startup_trials": _Integer(1), "deterministic_objective": _Flag()},
    "cmaes": {"n_startup_trials": _Integer(1), "popsize": _Integer(4), "with_margin": _Flag()},
    "sobol": {"scramble": _Flag()},
}


def refusal(spec: RunSpec) -> str | None:
    """Return in one line why this run cannot be served as asked for, or None."""
    return _options(spec) or _sampler_options(spec) or _dimensions(spec)


def _options(spec: RunSpec) -> str | None:
    if not spec.options:
        return None
    return f"adapter {spec.adapter!r} has no options, but got {next(iter(spec.options))!r}; remove it"


def _sampler_options(spec: RunSpec) -> str | None:
    sampler = spec.experiment.sampler
    rules = SAMPLER_OPTIONS.get(sampler.name, {})
    for name, value in sampler.options.items():
        rule = rules.get(name)
        if rule is None:
            have = f"it has: {', '.join(rules)}" if rules else "it has none"
            return f"sampler {sampler.name!r} of Optuna has no option {name!r}{nearest(name, rules)}; {have}"
        wanted = rule.refuse(value)
        if wanted is not None:
            return f"option `{name}` of sampler {sampler.name!r} must be {wanted}, but got {value!r}"
    return None


def _dimensions(spec: RunSpec) -> str | None:
    """CMA-ES needs two dimensions with an order; with fewer Optuna would draw at random, without a word."""
    if spec.experiment.sampler.name != "cmaes":
        return None
    searched = spec.experiment.search_space.searched.values()
    ordered = [item for item in searched if not isinstance(item, Categorical) or item.ordered]
    if len(ordered) >= 2:
        return None
    return f"Optuna's CMA-ES needs at least 2 numeric or ordered dimensions, but the space has {len(ordered)}; use `sampler: tpe`"
