"""What a file may ask for of every adapter, by its plan: it serves it by means that it declares, core does, or it is refused by
name. What comes of it in runs the conformance kit shows: `budget.goal`, `configurations.first`, `workers.devices`, ..."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from builders.specs import CURVE, make_spec
from tuneoff.base.capabilities import LOCAL, offered
from tuneoff.base.space import Float, SearchSpace
from tuneoff.errors import ExperimentError
from tuneoff.experiment.skip_check import SkipCheck
from tuneoff.experiment.spec import EnvironmentSpec, Objective, RunSpec, Strategy, Workers
from tuneoff.experiment.strategies import LISTED
from tuneoff.registry import AdapterClass, adapter_class, scan
from tuneoff.run.supervisor.execution import new_execution, trial_context

WAY_OUT = re.compile(r"; (use|remove|leave|it has)|remove workers\.devices")
OPTIONS = ("cost_model", "constant_liar")  # that some samplers have
ELSEWHERE: dict[str, dict[str, Any]] = {
    "cluster": {"hosts": ["localhost"]},
    "ssh": {"hosts": ["localhost"]},
    "kubernetes": {"image": "image"},
    "kubernetes-jobs": {"image": "image"},
}
GOAL = Objective(metric="loss", mode="min", goal=0.5, stop=True)


def requests(spec: RunSpec, adapter: AdapterClass) -> Iterator[tuple[str, RunSpec, bool]]:
    """Yield what is asked for, by its key, the run that asks for it, and whether somebody serves it."""
    capabilities, experiment = adapter.capabilities_on(spec.platform), spec.experiment

    def asking(**changes: Any) -> RunSpec:
        return replace(spec, experiment=replace(experiment, **changes))

    yield "stop", asking(objective=GOAL), True
    yield "devices", asking(workers=Workers(count=2, devices=(5, 3))), spec.platform == LOCAL
    for count in (1, 2, 4):
        yield f"count {count}", asking(workers=Workers(count=count)), True
    for name, offer in offered(capabilities.samplers).items():
        if name not in LISTED:
            first = asking(sampler=Strategy(name=name), configurations=({"x": 0.5, "y": 0.5}, {"x": 0.25, "y": 0.5}))
            yield "first_configurations", first, bool(capabilities.first_configurations)
        for option in OPTIONS:
            yield option, asking(sampler=Strategy(name=name, options={option: False})), option in offer.options


def answer(spec: RunSpec, adapter: AdapterClass) -> str | None:
    try:
        return SkipCheck().reason(spec, adapter)
    except ExperimentError as error:
        return str(error)


def faults(spec: RunSpec, adapter: AdapterClass, folder: Path) -> list[str]:
    """Return what is accepted and ignored, declared and refused, or refused without its name or a way out."""
    found = []
    for key, asked, is_served in requests(spec, adapter):
        reason = answer(asked, adapter)
        where = f"{key} with {asked.experiment.sampler.name} on {spec.platform}"
        if reason is None and not is_served:
            found.append(f"{where} is ignored")
        elif reason is not None and is_served:
            found.append(f"{where} is refused: {reason}")
        elif reason is not None and not (key in reason and WAY_OUT.search(reason)):
            found.append(f"{where} is refused without its name or a way out: {reason}")
        if key == "stop" and reason is None:
            by_core = trial_context(new_execution(asked, folder)).goal is not None
            if by_core == bool(adapter.capabilities_on(spec.platform).stops_at_goal):
                found.append(f"{where} is nobody's, or both core's and the framework's")
    return found


def plain(name: str, adapter: AdapterClass, platform: str) -> RunSpec:
    """Return a run that asks for nothing special, on this machine as if all that it needs were installed."""
    spec = make_spec(
        name,
        target=f"{adapter.__module__}:{adapter.__qualname__}",
        platform=platform,
        options=ELSEWHERE.get(platform),
        reports=adapter.capabilities_on(platform).reports_with("none"),
        workload=replace(CURVE, name=CURVE.target),
        search_space=SearchSpace({"x": Float(low=0.0, high=1.0), "y": Float(low=0.0, high=1.0)}),
        objective=Objective(metric="loss", mode="min"),
    )
    return replace(spec, environment=EnvironmentSpec() if platform == LOCAL else None)


@pytest.mark.parametrize("name", [plugin.name for plugin in scan("adapter")])
def test_each_feature_of_a_file_is_served_or_refused_by_name(name: str, tmp_path: Path) -> None:
    adapter = adapter_class(name)
    specs = [plain(name, adapter, platform) for platform in adapter.platforms()]
    reasons = {spec.platform: answer(spec, adapter) for spec in specs}
    able = [spec for spec in specs if reasons[spec.platform] is None]
    if not able:
        pytest.skip("; ".join(map(str, reasons.values())))
    assert [fault for spec in able for fault in faults(spec, adapter, tmp_path)] == []


PLANTED = {
    "trust.check.planted.refusing:AcceptsAnySamplerOption": "cost_model with random on local is ignored",
    "trust.check.planted.refusing:RefusesItsOwn": "cost_model with grid on local is refused without its name or a way out: "
    "sampler 'grid' comes later",
}


@pytest.mark.parametrize("target", PLANTED)
def test_an_adapter_that_ignores_one_is_found(target: str, tmp_path: Path) -> None:
    adapter = adapter_class(target)
    found = faults(plain(target, adapter, LOCAL), adapter, tmp_path)
    assert PLANTED[target] in found
