"""Configurations as the emulated suggestion service answers them, decoded as a pod decodes them. No server, no pod.

On a real cluster the services of Katib answer a running Experiment alone: there, configurations come from real runs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from katib_emulation.suggestions import algorithm_for
from tuneoff.experiment.translation import FrameworkSpace
from tuneoff.record.run_context import RunContext
from tuneoff_adapters.katib.manifest import experiment_manifest
from tuneoff_adapters.katib.plan import katib_plan
from tuneoff_adapters.katib.space import KatibSpace


def draw(context: RunContext, count: int) -> Iterator[Mapping[str, object]]:
    """Yield the configurations of `count` trials of the Experiment that a run would submit."""
    plan = katib_plan(context)
    pod = KatibSpace.from_json(plan.space.to_json())
    service = algorithm_for(experiment_manifest(plan))
    for index in range(count):
        yield pod.decode(service(index, ()))


def framework_space(context: RunContext) -> FrameworkSpace:
    """Return the space as the Experiment states it, in the texts of Katib."""
    space = katib_plan(context).space
    ends = {parameter["name"]: _ends(parameter["feasibleSpace"]) for parameter in space.parameters()}

    def encode(configuration: Mapping[str, Any]) -> dict[str, Any]:
        native = space.translation.encode(configuration)
        return {name: space.dimensions[name].encode(value) for name, value in native.items()}

    return FrameworkSpace(ends=ends, decode=space.decode, encode=encode)


def _ends(feasible: Mapping[str, Any]) -> tuple[str, str]:
    return (feasible["list"][0], feasible["list"][-1]) if "list" in feasible else (feasible["min"], feasible["max"])
