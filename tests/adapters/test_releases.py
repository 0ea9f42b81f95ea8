"""Releases: pip installs the range that an adapter declares, and what a release lacks is refused with the one that has it."""

from __future__ import annotations

import tomllib
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

import pytest

from builders.specs import make_spec
from fake_plugins import Rich
from tuneoff.adapter import Capabilities, Offer
from tuneoff.experiment import strategies
from tuneoff.experiment.skip_check import SkipCheck
from tuneoff.experiment.spec import Strategy
from tuneoff.experiment.strategies import release_refusal
from tuneoff_adapters.optuna.offers import CAPABILITIES as OPTUNA
from tuneoff_adapters.ray_tune.offers import CAPABILITIES as RAY_TUNE
from tuneoff_adapters.syne_tune.offers import CAPABILITIES as SYNE_TUNE

PROJECT = Path(__file__).parents[2]
RANGES = {"optuna": ("optuna", OPTUNA), "ray": ("ray[tune]", RAY_TUNE), "syne-tune": ("syne-tune", SYNE_TUNE)}  # by extra


@pytest.mark.parametrize("extra", RANGES)
def test_pip_installs_the_releases_that_the_adapter_serves_and_the_commands_were_tried_with_the_newest(extra: str) -> None:
    name, capabilities = RANGES[extra]
    extras = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert extras[extra][0] == f"{name}>={capabilities.minimum_version},<{capabilities.below_version}"
    pins = dict(line.split("==") for line in (PROJECT / "constraints.txt").read_text().splitlines() if "==" in line)
    pinned = pins[capabilities.package].split(".")
    below = capabilities.below_version.split(".")
    assert [*pinned[: len(below) - 1], str(int(pinned[len(below) - 1]) + 1)] == below


@pytest.mark.parametrize(
    ("here", "least", "is_refused"), [("4.1.0", "4.2", True), ("4.2.0", "4.2", False), ("4.10", "4.2", False)]
)
def test_what_a_release_lacks_is_refused_with_the_first_one_that_has_it(
    monkeypatch: pytest.MonkeyPatch, here: str, least: str, is_refused: bool
) -> None:
    monkeypatch.setattr(strategies, "installed_version", {"optuna": here}.get)
    refusal = release_refusal("storage 'grpc'", least, make_spec("optuna"), OPTUNA)
    text = f"storage 'grpc' needs Optuna {least} or later, but {here} is installed; run: pip install 'optuna>={least}'"
    assert refusal == (text if is_refused else None)


def test_a_sampler_of_a_later_release_is_skipped_by_the_plan() -> None:
    offers = {"own": Offer(minimum_version="999"), "random": Offer(minimum_version="5"), "tpe": Offer()}

    class Later(Rich):
        capabilities: ClassVar[Capabilities] = replace(Rich.capabilities, samplers=offers)

    reasons = [SkipCheck().reason(make_spec("rich", sampler=Strategy(name=name)), Later) for name in offers]
    assert reasons[1:] == [None, None]
    assert reasons[0] is not None
    assert reasons[0].startswith("sampler 'own' of adapter 'rich' needs PyYAML 999 or later, but ")
