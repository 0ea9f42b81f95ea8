"""Canonical JSON, hashes and seeds."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from hypothesis import strategies as st

from trial_runs import trial_context
from tuneoff.base.identity import canonical_json, configuration_digest, derive_seed
from tuneoff.errors import ExperimentError

values = st.dictionaries(st.text(max_size=4), st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.booleans())


def test_an_integer_and_a_float_are_different_configurations() -> None:
    assert configuration_digest({"a": 1}) != configuration_digest({"a": 1.0})


@pytest.mark.parametrize("value", [math.nan, math.inf, {1, 2}, b"x", "\ud800", {("a",): 1}])
def test_what_has_no_json_form_is_refused(value: object) -> None:
    with pytest.raises(ExperimentError, match="only finite JSON values"):
        canonical_json([value])


def test_seeds_of_different_axes_are_unrelated_and_stable() -> None:
    seeds = {derive_seed(axis, seed) for axis in ("split", "sampler", "trial") for seed in range(100)}
    assert len(seeds) == 300
    assert all(0 <= seed < 2**31 for seed in seeds)
    assert derive_seed("split", 0) == derive_seed("split", 0)


def test_the_seed_of_a_run_reaches_its_split_and_each_trial_and_a_configuration_its_trial_alone(tmp_path: Path) -> None:
    seeds = [
        trial_context(tmp_path, seed=seed).seeds(configuration_digest({"x": x})) for seed, x in ((0, 0.5), (1, 0.5), (0, 0.25))
    ]
    assert len({one.trial for one in seeds}) == 3
    assert seeds[0].split == seeds[2].split != seeds[1].split
