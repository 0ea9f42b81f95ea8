"""Rules: which keys of an experiment that comes with tuneoff a file may change, by the tier that it claims.

What is compared are the plans of both, run by run: a word of the file about itself counts for nothing.
"""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import msgspec

from tuneoff.base.identity import canonical_json, digest
from tuneoff.base.json_values import plain
from tuneoff.base.packages import experiments
from tuneoff.base.reading import read, show
from tuneoff.base.targets import unknown_name
from tuneoff.errors import ExperimentError, TuneoffError, UnknownNameError
from tuneoff.experiment.load import load_matrix
from tuneoff.experiment.plan import RULES, Plan, make_plan
from tuneoff.experiment.schema import RulesPart
from tuneoff.experiment.spec import RunSpec
from tuneoff.registry import adapter_class

BASELINE = frozenset(
    {"adapters", "platform", "seeds", "timeouts", "power", "carbon", "prices"}
)  # of the place, or who takes part
METHOD = frozenset({"sampler", "pruner", "first_configurations", "configurations", "stops", "failures", "reports"})
TIERS: Mapping[str, frozenset[str]] = {"baseline": BASELINE, "tweaked": BASELINE | METHOD | {"adapters.options"}}
_JUDGED = ("questions", "primary_metric", "margin_percent", "quality_margin", "confidence", "family_size", "anchors", "weights")


def under_rules(plan: Plan, rules: RulesPart) -> Plan:
    """Return the plan of a file that claims a tier, which is frozen with its analysis.

    Raises:
        UnknownNameError: no such experiment comes with tuneoff.
        ExperimentError: a key differs that the tier does not leave free.
    """
    try:
        reference = _reference(rules.of)
    except UnknownNameError as error:
        raise UnknownNameError(f"{plan.path}: {RULES}.of: {error}") from error
    if text := deviation(plan, reference, rules):
        raise ExperimentError(f"{plan.path}: {RULES}: {text}")
    return replace(
        plan, analysis={**plan.analysis, RULES: {**msgspec.structs.asdict(rules), "digest": digest(dict(reference.content))}}
    )


def broken_rules(plan: Plan) -> tuple[str, str]:
    """Return how a recorded plan breaks the rules that it claims, and why that is not known here; "" for what does not hold.

    Raises:
        ExperimentError: what it claims is no such claim.
    """
    claim = dict(plan.analysis[RULES])
    stated = claim.pop("digest", None)
    rules = read(RulesPart, claim)
    try:
        reference = _reference(rules.of)
    except ExperimentError as error:
        return "", str(error)
    if stated != digest(dict(reference.content)):
        return "", f"{rules.of!r} of this tuneoff is another file than that of the rules"
    return deviation(plan, reference, rules), ""


def _reference(name: str) -> Plan:
    paths = experiments()
    if name not in paths:
        raise UnknownNameError(unknown_name("experiment", name, paths))
    return make_plan(load_matrix(paths[name]))


def deviation(plan: Plan, reference: Plan, rules: RulesPart) -> str:
    """Return the first key in which a plan differs from its reference and may not, with both values and the way out."""
    key, value, other = next(_differences(plan, reference, TIERS[rules.tier]), ("", None, None))
    if not key:
        return ""
    parts = key.split(".")
    fits = {parts[0], ".".join(parts[:2])} & (TIERS["tweaked"] - TIERS[rules.tier])
    way_out = "set it so, or write tier: tweaked" if fits else "set it so, or remove `rules`"
    return f"tier {rules.tier} of {rules.of!r} may not change {key}: it is {show(value)}, there {show(other)}; {way_out}"


def _differences(plan: Plan, reference: Plan, free: frozenset[str]) -> Iterator[tuple[str, Any, Any]]:
    """Yield keys in which the plans differ, beyond the free ones, with the value of each."""
    tasks = [[_task(run.spec, free) for run in each.counted] for each in (plan, reference)]
    ours, theirs = map(_distinct, tasks)
    for these, those, is_ours in ((ours, theirs, True), (theirs, ours, False)):
        for task in these:
            if task not in those:
                closest = min((dict(_differing(task, other)) for other in those), key=len)
                for key, (value, other) in closest.items():
                    yield key, *((value, other) if is_ours else (other, value))
    of_files = [
        {
            **({} if "reports" in free else {"reports": each.content.get("reports", "needed")}),
            # as written: what is planned also depends on what is installed
            "warm_up": each.content.get("warm_up", True),
            **{f"analysis.{key}": each.analysis.get(key) for key in _JUDGED},
        }
        for each in (plan, reference)
    ]
    yield from ((key, *values) for key, values in _differing(*of_files))
    by_adapter: dict[tuple[str, str], list[Any]] = {}
    for run in reference.counted:
        by_adapter.setdefault((run.spec.adapter, run.spec.experiment.pruner.name), []).append(_settings(run.spec, free))
    for run in plan.counted:
        settings = _settings(run.spec, free)
        allowed = by_adapter.get((run.spec.adapter, run.spec.experiment.pruner.name)) or [
            {**settings, "adapters.options": {}, "adapters.environment.packages": []}
        ]
        if settings not in allowed:
            yield from ((key, settings[key], allowed[0][key]) for key in settings if settings[key] != allowed[0][key])
    cells: dict[str, set[tuple[str, int]]] = {}  # of each entry, which must be the same
    for run, task in zip(plan.counted, tasks[0], strict=True):
        cells.setdefault(run.label, set()).add((canonical_json(task), run.spec.seed))
    every = set[tuple[str, int]]().union(*cells.values())
    yield from ((f"runs of {label}", len(cell), len(every)) for label, cell in cells.items() if cell != every)


def _task(spec: RunSpec, free: frozenset[str]) -> dict[str, Any]:
    """Return what a run does whoever does it, by the file's keys."""
    content = {"copies": 1, **plain(spec.experiment)}
    del content["workload"]["target"], content["task_digest"]
    content["search_space"] = {dimension.pop("name"): dimension for dimension in content["search_space"]["dimensions"]}
    if spec.experiment.sampler.name != "fixed":
        content["first_configurations"] = content.pop("configurations")
    variant = {f"matrix.{key}": value for key, value in content.pop("variant").items() if key.partition(".")[0] not in free}
    return {**{key: value for name in content if name not in free for key, value in _flat(name, content[name])}, **variant}


def _flat(key: str, value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping) and value:
        for name, below in value.items():
            yield from _flat(f"{key}.{name}", below)
    else:
        yield key, value


def _settings(spec: RunSpec, free: frozenset[str]) -> dict[str, Any]:
    """Return what an adapter is set to, beyond where and how patiently it is run."""
    local: Collection[str] = ()  # by the installed adapter: a record may name any
    if ":" not in spec.adapter:
        with contextlib.suppress(TuneoffError):
            local = adapter_class(spec.adapter).local_options_on(spec.platform)
    options = {name: value for name, value in spec.options.items() if name not in local}
    packages = [*spec.environment.packages] if spec.environment else []
    settings = {"adapters.options": options, "adapters.environment.packages": packages, "reports": spec.reports}
    return {key: value for key, value in settings.items() if key not in free}


def _distinct(values: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    return list({canonical_json(value): value for value in values}.values())


def _differing(first: Mapping[str, Any], second: Mapping[str, Any]) -> Iterator[tuple[str, tuple[Any, Any]]]:
    for key in {**first, **second}:
        if canonical_json([first.get(key)]) != canonical_json([second.get(key)]):
            yield key, (first.get(key), second.get(key))
