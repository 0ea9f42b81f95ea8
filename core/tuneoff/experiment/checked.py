"""Reading back a specification from a file that anyone may have changed. Apart from `spec`, which light processes import."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from tuneoff.errors import ExperimentError
from tuneoff.experiment.dimension import DIMENSIONS
from tuneoff.experiment.spec import (
    Budget,
    Failures,
    Objective,
    RunSpec,
    Strategy,
    Timeouts,
    Workers,
    WorkloadSpec,
    run_spec_from_json,
)


def checked_run_spec(data: Any) -> RunSpec:
    """Read back what `run_spec_to_json` gave, from a file that anyone may have changed: each part must be of its type.

    Raises:
        ExperimentError: it is none, or a part is of another type.
    """
    spec = run_spec_from_json(data)
    try:
        for part, kind in _PARTS.items():
            msgspec.convert(data["experiment"][part], kind)
        msgspec.convert({**data, "experiment": None}, _Scalars)
        msgspec.convert({name: data["experiment"][name] for name in _LISTS}, _Lists)
        for value in data["experiment"]["search_space"]["dimensions"]:
            _check_dimension(value)
    except (msgspec.ValidationError, LookupError, TypeError) as error:
        raise ExperimentError(f"a run's specification is damaged: {error}") from error
    return spec


def _check_dimension(data: Mapping[str, Any]) -> None:
    """Check the types in a dimension's JSON form.

    Raises:
        msgspec.ValidationError: one is another.
    """
    if not isinstance(data["name"], str):
        raise msgspec.ValidationError(f"a dimension's name must be text, but got {data['name']!r}")
    msgspec.convert({name: value for name, value in data.items() if name not in ("type", "name")}, DIMENSIONS[data["type"]])


class _Scalars(msgspec.Struct, kw_only=True):
    """The types of a run's own fields."""

    adapter: str
    adapter_target: str
    platform: str
    seed: int
    replicate: int
    options: dict[str, Any]
    warm_up: bool
    local_options: list[str] = []


class _Lists(msgspec.Struct, kw_only=True):
    """The types of an experiment's fields that are no part."""

    configurations: list[dict[str, Any]]
    stops: dict[str, int]
    variant: dict[str, Any]
    task_digest: str


_PARTS = {
    "workload": WorkloadSpec,
    "objective": Objective,
    "sampler": Strategy,
    "pruner": Strategy,
    "budget": Budget,
    "workers": Workers,
    "timeouts": Timeouts,
    "failures": Failures,
}
_LISTS = ("configurations", "stops", "variant", "task_digest")
