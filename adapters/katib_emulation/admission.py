"""What Katib's webhooks do with an Experiment before it is stored: decode it, fill in defaults, check it (Katib v0.19.0).

The real CRDs have no schema: whatever these rules do not refuse is stored. Differences to Katib, all of them stricter, because
nothing here could run it: refused are a trial template in a ConfigMap or of another kind than Job, fields of a Job that
`fields.json` lacks, success and failure conditions of its own, collectors but StdOut and text in a File, NAS, normal
distributions, resume policies, references to a trial's other data than its name, fewer parallel trials than before, and all but
the algorithms random, grid and multivariate-tpe and the early stopping medianstop. Whatever the emulation alone refuses has "the
emulated Katib" in its text, but for a Job's fields.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from katib_emulation.errors import denied
from katib_emulation.objects import copied, has_condition

DEFAULTER = "defaulter.experiment.katib.kubeflow.org"
"""The webhook that denies an object whose fields have wrong types."""

INJECTION_LABEL = "katib.kubeflow.org/metrics-collector-injection"
TRIAL_NAME = "${trialSpec.Name}"
"""The one reference to the trial itself that is understood."""

ALGORITHMS = ("random", "grid", "multivariate-tpe")
EARLY_STOPPINGS = ("medianstop",)
COLLECTORS = ("StdOut", "File")

_TEMPLATE = "spec.trialTemplate"
_PLACEHOLDER = re.compile(r"\$\{trialParameters\..+?\}")
_CONDITIONS = {
    f"{name}Condition": f'status.conditions.#(type=="{kind}")#|#(status=="True")#'
    for name, kind in (("success", "Complete"), ("failure", "Failed"))
}
_NAME = re.compile("[a-z]([-a-z0-9]*[a-z0-9])?")  # matched at the start only, as Katib does: "a_b" passes here
_NAME_TEXT = (
    "name must consist of lower case alphanumeric characters or '-', start with an alphabetic character, "
    "and end with an alphanumeric character (e.g. 'my-name', or 'abc-123', "
    "regex used for validation is '^[a-z]([-a-z0-9]*[a-z0-9])?)') and may not be longer than 40 characters. "
)
_EDITABLE = ("parallelTrialCount", "maxTrialCount", "maxFailedTrialCount")


def admit_experiment(new: Mapping[str, Any], old: Mapping[str, Any] | None, namespace: Mapping[str, Any]) -> dict[str, Any]:
    """Return a copy of the Experiment with Katib's defaults, without the fields that Katib does not know.

    Args:
        new: the Experiment as it shall be stored, its metadata complete (name, namespace).
        old: the stored one where this is an update; None for a create.
        namespace: the Namespace object in which it shall live.

    Raises:
        StatusError: 400, a webhook denies it; the message has every error with its field's path.
    """
    decoder = Decoder()
    decoded = decoder.read({"spec": new.get("spec") or {}}, "Experiment")
    if decoder.mismatches:
        struct, path, got, wanted = decoder.mismatches[0]
        field = f"{struct}.{'.'.join(path)}"
        raise denied(f"json: cannot unmarshal {got} into Go struct field {field} of type {wanted}", DEFAULTER)
    spec: dict[str, Any] = copied(decoded["spec"])
    _fill_in(spec)
    name = new["metadata"].get("name") or ""
    if (namespace["metadata"].get("labels") or {}).get(INJECTION_LABEL) != "enabled":
        lacks = f'the namespace lacks label "{INJECTION_LABEL}: enabled"'
        raise denied(f'Cannot create the Experiment "{name}" in namespace "{namespace["metadata"]["name"]}": {lacks}')
    errors = []
    if not _NAME.match(name) or len(name) > 40:
        errors.append(_invalid("metadata.name", name, _NAME_TEXT))
    errors += _budget_errors(spec)
    if old is not None and spec != old["spec"]:
        errors += _edit_errors(spec, old)
    errors += list(_objective_errors(spec.get("objective") or {})) or _spec_errors(spec)  # after these Katib looks no further
    if errors:
        raise denied(errors[0] if len(errors) == 1 else f"[{', '.join(errors)}]")
    return {**copied(dict(new)), "spec": spec}


class Decoder:
    """Reads JSON into typed structures, as Go's decoder does, and keeps account of what does not fit.

    `fields.json` names the fields of each structure with their types: `*` a pointer (an empty value is kept), `[]` a list, `{}`
    a map of strings, a trailing `?` a field that is left out when it is empty. Sources: k8s.io/api v0.34 for Jobs, Katib v0.19.0
    for Experiments.
    """

    def __init__(self) -> None:
        self.mismatches: list[tuple[str, tuple[str, ...], str, str]] = []  # (structure, names of fields, JSON type, wanted)
        self.lost: list[tuple[str, Any]] = []  # what is not kept: path with indices, value

    def read(self, value: Mapping[str, Any], struct: str) -> dict[str, Any]:
        """Return what the structure keeps of `value`."""
        return self._struct(value, struct, "", ())

    def _struct(self, value: Mapping[str, Any], struct: str, path: str, names: tuple[str, ...]) -> dict[str, Any]:
        fields, kept = known_fields()[struct], {}
        for name, item in value.items():
            wanted = fields.get(name)
            if wanted is None or item is None:
                if not (item is None and wanted == "time"):  # an unset time is written as null
                    self.lost.append((f"{path}/{name}", item))
                continue
            kind = wanted.rstrip("?")
            read = self._value(item, kind, f"{path}/{name}", (*names, name), struct)
            if wanted.endswith("?") and not kind.startswith("*") and kind not in known_fields() and not read:
                self.lost.append((f"{path}/{name}", item))
            else:
                kept[name] = read
        return kept

    def _value(self, value: Any, wanted: str, path: str, names: tuple[str, ...], struct: str) -> Any:
        kind = wanted.removeprefix("*")
        if kind.startswith("[]") and isinstance(value, list):
            return [self._value(item, kind[2:], f"{path}/{i}", names, struct) for i, item in enumerate(value)]
        if kind.startswith("{}") and isinstance(value, dict):
            return {key: self._value(item, kind[2:], f"{path}/{key}", names, struct) for key, item in value.items()}
        if kind in known_fields() and isinstance(value, dict):
            return self._struct(value, kind, path, names)
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        fits = {
            "string": isinstance(value, str),
            "time": isinstance(value, str),
            "bool": isinstance(value, bool),
            "int32": is_number and isinstance(value, int),
            "int64": is_number and isinstance(value, int),
            "float64": is_number,
            "quantity": is_number or isinstance(value, str),
            "object": isinstance(value, dict),
            "any": True,
        }
        if not fits.get(kind, False):
            got = (
                "number"
                if is_number
                else {bool: "bool", str: "string", list: "array", dict: "object", type(None): "null"}[type(value)]
            )
            self.mismatches.append((struct, names, got, "map[string]string" if kind.startswith("{}") else kind))
        return value


@cache
def known_fields() -> Mapping[str, Mapping[str, str]]:
    """Return the type of each field of each structure."""
    fields: dict[str, dict[str, str]] = json.loads(Path(__file__).with_name("fields.json").read_text(encoding="utf-8"))
    return fields


def _fill_in(spec: dict[str, Any]) -> None:
    """Add Katib's defaults to a decoded spec, in place. Every metric is ranked by its best report where no strategy is given."""
    spec.setdefault("parallelTrialCount", 3)
    spec.setdefault("resumePolicy", "Never")
    if "objective" in spec:
        objective = spec["objective"]
        best = {"minimize": "min", "maximize": "max"}.get(objective.get("type", ""), "latest")
        strategies: list[dict[str, Any]] = objective.get("metricStrategies", [])
        missing = [objective.get("objectiveMetricName", ""), *objective.get("additionalMetricNames", ())]
        missing = [name for name in missing if name not in {strategy.get("name") for strategy in strategies}]
        objective["metricStrategies"] = [*strategies, *({"name": name, "value": best} for name in missing)]
    if "trialTemplate" in spec:
        spec["trialTemplate"] = {**_CONDITIONS, **spec["trialTemplate"]}
    collector = spec.setdefault("metricsCollectorSpec", {}).setdefault("collector", {"kind": "StdOut"})
    if collector.get("kind") == "File":
        source = spec["metricsCollectorSpec"].setdefault("source", {})
        defaults = {"path": "/var/log/katib/metrics.log", "kind": "File", "format": "TEXT"}
        source["fileSystemPath"] = {**defaults, **source.get("fileSystemPath", {})}
    for parameter in spec.get("parameters", ()):
        parameter.setdefault("feasibleSpace", {}).setdefault("distribution", "uniform")


def _invalid(path: str, value: Any, why: str) -> str:
    """Say that a value breaks a rule, as the Kubernetes field validation words it."""
    return f"{path}: Invalid value: {json.dumps(value, ensure_ascii=False)}: {why}"


def _required(path: str, why: str = "must be specified") -> str:
    return f"{path}: Required value: {why}"


def _budget_errors(spec: Mapping[str, Any]) -> Iterator[str]:
    counts = {name: spec.get(name) for name in reversed(_EDITABLE)}
    most = counts["maxTrialCount"]
    for name, value in counts.items():
        if value is not None and value < (least := 0 if name == "maxFailedTrialCount" else 1):
            yield _invalid(f"spec.{name}", value, "must be greater than 0" if least else "should not be less than 0")
    for name, value in counts.items():
        if most is not None and value is not None and value > most:
            yield _invalid(f"spec.{name}", value, "should be less than or equal to spec.maxTrialCount")


def _edit_errors(spec: Mapping[str, Any], old: Mapping[str, Any]) -> Iterator[str]:
    before, trials = old["spec"], (old.get("status") or {}).get("trials", 0)
    if has_condition(old, "Succeeded", "Failed"):
        why = (
            "Experiment can be restarted if it is in succeeded state by reaching max trials and "
            "spec.resumePolicy = LongRunning or spec.resumePolicy = FromVolume, when experiment is completed"
        )
        yield _invalid("spec.resumePolicy", spec["resumePolicy"], why)
    if "maxTrialCount" in spec and spec["maxTrialCount"] <= trials:
        yield _invalid("spec.maxTrialCount", spec["maxTrialCount"], "must be greater than status.trials count")
    if spec["parallelTrialCount"] < before["parallelTrialCount"]:
        why = "the emulated Katib deletes no running trials, so it only raises the number of parallel ones"
        yield _invalid("spec.parallelTrialCount", spec["parallelTrialCount"], why)
    if {k: v for k, v in spec.items() if k not in _EDITABLE} != {k: v for k, v in before.items() if k not in _EDITABLE}:
        only = "only spec.parallelTrialCount, spec.maxTrialCount and spec.maxFailedTrialCount are editable"
        yield f"spec: Forbidden: {only}"


def _objective_errors(objective: Mapping[str, Any]) -> Iterator[str]:
    if objective.get("type") not in ("minimize", "maximize"):
        yield _invalid("spec.objective.type", objective.get("type", ""), "must be minimize or maximize")
    if not objective.get("objectiveMetricName"):
        yield _required("spec.objective.objectiveMetricName")


def _spec_errors(spec: Mapping[str, Any]) -> Iterator[str]:
    for field, config, names in (("algorithm", "Suggestion", ALGORITHMS), ("earlyStopping", "EarlyStopping", EARLY_STOPPINGS)):
        name = spec.get(field, {}).get("algorithmName", "")
        if name not in names and (field == "algorithm" or field in spec):
            missing = f"failed to find {config.lower()} config for algorithm: {name} in ConfigMap: katib-config"
            why = f"unable to get {config} config data for algorithm {name}: {missing}"
            yield _invalid(f"spec.{field}.algorithmName", name, why)
    if spec["resumePolicy"] != "Never":
        yield _invalid("spec.resumePolicy", spec["resumePolicy"], "the emulated Katib restarts no experiment: use Never")
    yield from _template_errors(spec)
    if not spec.get("parameters"):
        yield _required("spec", "spec.parameters or spec.nasConfig must be specified; the emulated Katib has no NAS")
    for index, parameter in enumerate(spec.get("parameters", ())):
        yield from _parameter_errors(f"spec.parameters[{index}]", parameter)
    yield from _collector_errors(spec["metricsCollectorSpec"])


def _parameter_errors(path: str, parameter: Mapping[str, Any]) -> Iterator[str]:
    """Check one parameter. Katib compares no numbers: min above max passes, and so does a log scale from 0."""
    kind, space = parameter.get("parameterType", ""), parameter["feasibleSpace"]
    if space["distribution"] not in ("uniform", "logUniform"):
        why = "the emulated Katib draws uniform and logUniform only"
        yield _invalid(f"{path}.feasibleSpace.distribution", space["distribution"], why)
    if kind in ("int", "double"):
        if space.get("list"):
            why = f"feasibleSpace.list is not supported for parameterType: {kind}"
            yield _invalid(f"{path}.feasibleSpace.list", space["list"], why)
        if not space.get("max") or not space.get("min"):
            why = f"feasibleSpace.max or feasibleSpace.min must be specified for parameterType: {kind}"
            yield _required(f"{path}.feasibleSpace.max", why)
    elif kind != "categorical":
        yield _invalid(f"{path}.parameterType", kind, f"parameterType: {kind} is not supported")
    elif any(space.get(name) for name in ("max", "min", "step")):
        why = f"feasibleSpace .max, .min and .step is not supported for parameterType: {kind}"
        yield _invalid(f"{path}.feasibleSpace", space, why)


def _collector_errors(spec: Mapping[str, Any]) -> Iterator[str]:
    path, kind = "spec.metricsCollectorSpec", spec["collector"].get("kind", "")
    if kind not in COLLECTORS:
        yield _invalid(f"{path}.collector.kind", kind, f"the emulated Katib has the collectors {' and '.join(COLLECTORS)} only")
    if kind != "File":
        return
    file = spec["source"]["fileSystemPath"]
    if file["kind"] != "File" or not file["path"].startswith("/"):
        yield _required(f"{path}.source.fileSystemPath.path", "file path where metrics file exists is required")
    if file["format"] != "TEXT":
        yield _invalid(f"{path}.source.fileSystemPath.format", file["format"], "the emulated Katib reads TEXT only")
    for pattern in (spec["source"].get("filter") or {}).get("metricsFormat", ()):
        if not re.search(r".*\(.*\).*\(.*\).*", pattern):
            yield _invalid(f"{path}.source.filter.metricsFormat", pattern, "two top subexpressions are required")


def _template_errors(spec: Mapping[str, Any]) -> Iterator[str]:
    template = spec.get("trialTemplate") or {}
    for name in ("primaryContainerName", "trialParameters", "trialSpec"):
        if not template.get(name):
            yield _required(f"{_TEMPLATE}.{name}")
    for name, expression in _CONDITIONS.items():
        if template.get(name) != expression:
            yield _invalid(f"{_TEMPLATE}.{name}", template.get(name), f"the emulated Katib understands {expression} only")
    if not template.get("trialParameters") or not template.get("trialSpec"):
        return
    text = json.dumps(template["trialSpec"], ensure_ascii=False)
    parameters = {TRIAL_NAME, *(parameter.get("name", "") for parameter in spec.get("parameters", ()))}
    for index, parameter in enumerate(template["trialParameters"]):
        path, name, reference = f"{_TEMPLATE}.trialParameters[{index}]", parameter.get("name", ""), parameter.get("reference", "")
        if reference not in parameters:
            yield _invalid(f"{path}.reference", reference, f"parameter reference {reference} does not exist in spec.parameters")
        placeholder = f"${{trialParameters.{name}}}"
        if placeholder not in text:
            yield _invalid(
                f"{path}.name", name, f"parameter name: {name} in spec.trialParameters not found in {_TEMPLATE}: {text}"
            )
        text = text.replace(placeholder, "test-value")
    unknown = _PLACEHOLDER.findall(text)
    if unknown:
        why = f"parameters: [{' '.join(unknown)}] in {_TEMPLATE} not found in spec.trialParameters"
        yield _invalid(_TEMPLATE, "", why)
    yield from _job_errors(json.loads(text))


def _job_errors(job: Mapping[str, Any]) -> Iterator[str]:
    """Check that the template is a Job that survives the way through the typed structure."""
    metadata = job.get("metadata") or {}
    if metadata.get("name") or metadata.get("namespace"):
        yield _invalid(_TEMPLATE, "", f"metadata.name and metadata.namespace in {_TEMPLATE} must be omitted")
    if (job.get("apiVersion"), job.get("kind")) != ("batch/v1", "Job"):
        yield _invalid(_TEMPLATE, job.get("kind"), "the emulated Katib runs Jobs of batch/v1 only")
        return
    if any((job.get("spec") or {}).get(name, 1) != 1 for name in ("completions", "parallelism")):
        yield _invalid(_TEMPLATE, "", "the emulated Katib runs Jobs of one pod only")
    decoder = Decoder()
    kept = decoder.read(job, "Job")
    reasons = [
        f"unable to convert spec.TrialTemplate: {'.'.join(names)} to Job: cannot convert {got} to {wanted}"
        for _, names, got, wanted in decoder.mismatches
    ]
    reasons += [
        f"unable to convert: {path} - {json.dumps(value, ensure_ascii=False)} to Job, converted template: "
        f"{json.dumps(kept, ensure_ascii=False)}"
        for path, value in decoder.lost
        if "/resources/limits/" not in path and "/resources/requests/" not in path
    ]
    for why in reasons[:1]:
        yield _invalid(_TEMPLATE, "", f"invalid {_TEMPLATE}: {why}")
