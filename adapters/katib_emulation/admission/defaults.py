"""Katib's defaulting webhook: what it fills into an Experiment (experiment_defaults.go of v0.19.0)."""

from __future__ import annotations

from typing import Any

SUCCESS_CONDITION = 'status.conditions.#(type=="Complete")#|#(status=="True")#'
FAILURE_CONDITION = 'status.conditions.#(type=="Failed")#|#(status=="True")#'


def fill_in(spec: dict[str, Any]) -> None:
    """Add the defaults to a decoded spec, in place."""
    spec.setdefault("parallelTrialCount", 3)
    spec.setdefault("resumePolicy", "Never")
    if "objective" in spec:
        _fill_strategies(spec["objective"])
    template = spec.get("trialTemplate")
    if template is not None and (template.get("trialSpec") or {}).get("kind") == "Job":
        template.setdefault("successCondition", SUCCESS_CONDITION)
        template.setdefault("failureCondition", FAILURE_CONDITION)
    _fill_collector(spec)
    for parameter in spec.get("parameters", ()):
        parameter.setdefault("feasibleSpace", {}).setdefault("distribution", "uniform")


def _fill_strategies(objective: dict[str, Any]) -> None:
    """Rank every metric, the additional ones too, by its best report, where no strategy is given."""
    best = {"minimize": "min", "maximize": "max"}.get(objective.get("type", ""), "latest")
    given: list[dict[str, Any]] = objective.get("metricStrategies", [])
    named = {strategy.get("name") for strategy in given}
    wanted = [objective.get("objectiveMetricName", ""), *objective.get("additionalMetricNames", ())]
    objective["metricStrategies"] = [*given, *({"name": name, "value": best} for name in wanted if name not in named)]


def _fill_collector(spec: dict[str, Any]) -> None:
    collector = spec.setdefault("metricsCollectorSpec", {}).setdefault("collector", {"kind": "StdOut"})
    if collector.get("kind") == "File":
        file = spec["metricsCollectorSpec"].setdefault("source", {}).setdefault("fileSystemPath", {})
        for name, value in (("path", "/var/log/katib/metrics.log"), ("kind", "File"), ("format", "TEXT")):
            file.setdefault(name, value)
