"""Specifications, plans and spaces for the tests of the Katib adapter."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from builders.spaces import SPACE
from builders.specs import NULL, make_context, make_spec
from tuneoff.experiment.spec import Objective, RunSpec, Strategy, Workers
from tuneoff.experiment.strategies import sample_distinct
from tuneoff_adapters.katib.plan import KatibPlan, katib_plan

IMAGE = "registry.example/tuneoff@sha256:0123456789abcdef"


def spec_of(sampler: str | Strategy = "random", *, platform: str = "kubernetes", **changes: Any) -> RunSpec:
    """Return a run; `options` are the adapter's, the rest are fields of the experiment."""
    options = changes.pop("options", {"image": IMAGE} if platform == "kubernetes" else {})
    fields: dict[str, Any] = {
        "workload": NULL,
        "search_space": SPACE,
        "objective": Objective(metric="validation_loss", mode="min"),
        "workers": Workers(count=2, cpus=1.0, memory_mb=500),
        **changes,
    }
    if sampler == "fixed" and not changes.get("configurations"):
        fields["configurations"] = tuple(sample_distinct(fields["search_space"], 8, seed=1))
    return make_spec(
        "katib",
        sampler=sampler,
        target="tuneoff_adapters.katib.adapter:KatibAdapter",
        platform=platform,
        seed=3,
        options=options,
        trials=8,
        epochs=3,
        **fields,
    )


def plan_of(spec: RunSpec, folder: Path) -> KatibPlan:
    """Return the plan of a new execution in `folder`."""
    context = make_context(spec, folder)
    context.events.close()
    return katib_plan(context)
