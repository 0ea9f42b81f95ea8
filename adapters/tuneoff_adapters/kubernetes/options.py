"""Options about a cluster: what a person writes under `options:` of an entry. Imports neither the SDK nor its clients."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from tuneoff.base.identity import is_finite
from tuneoff.base.targets import unknown_option
from tuneoff.errors import ExperimentError

if TYPE_CHECKING:
    from tuneoff.experiment.spec import RunSpec

KUBERNETES = "kubernetes"
JOBS = "kubernetes-jobs"  # a Job per trial, in place of one per worker

_TEXT = re.compile(r"[^\s\0]([^\n\r\0]*[^\s\0])?")
_LABEL_KEY = re.compile(r"([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?")
_LABEL_VALUE = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?")
_NAMESPACE = (re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?"), "a namespace's name (a-z, 0-9, `-`; at most 63)")
_NAME = (re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?"), "the name of an object (a-z, 0-9, `-`, `.`)")
_IN_NAMESPACE = ("image_pull_secret", "service_account", "data_claim")  # names of objects that must be there before the run
_RULES = {
    **dict.fromkeys(("katib_namespace", "namespace"), _NAMESPACE),
    **dict.fromkeys(_IN_NAMESPACE, _NAME),
    "device_resource": (re.compile(rf"(?=.+/){_LABEL_KEY.pattern}"), "an extended resource's name, e.g. nvidia.com/gpu"),
    "image": (re.compile(r"[^\s\0]+"), "an image's name without blanks"),
}
TIMES = ("api_seconds", "pending_seconds")
LOCAL_OPTIONS = frozenset({"kubeconfig", "context", *TIMES})  # the way to the cluster and the patience: no part of the run


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterOptions:
    """What can be set about the cluster."""

    kubeconfig: Path | None = None  # None: $KUBECONFIG, or else ~/.kube/config
    context: str | None = None  # None: the kubeconfig's current one
    namespace: str | None = None  # that is there, and that the run works in; None: one of its own, made and deleted by it
    image: str | None = None  # of the trials; required on kubernetes
    image_pull_secret: str | None = None  # name of a Secret in the run's namespace: never its content
    service_account: str | None = None  # of the trials' pods
    data_claim: str | None = None  # PersistentVolumeClaim with a prepared cache folder, mounted read-only at /data
    node_selector: Mapping[str, str] = field(default_factory=dict)  # of the trials' pods
    device_resource: str | None = None  # of which each of these pods has one to itself, as nvidia.com/gpu
    api_seconds: float = 60.0  # how long an API server that does not answer is waited for
    pending_seconds: float = 300.0  # how long a pod may wait for a node, an image, ... before the run ends with its reason


def epochs_refusal(spec: RunSpec) -> str | None:
    """Return why pods cannot share the run's budget or have numbered devices, or None: they see nothing of each other."""
    if spec.experiment.workers.devices:
        way_out = "option device_resource: nvidia.com/gpu gives each pod of a real cluster one"
        return f"the cluster chooses a pod's device; remove workers.devices ({way_out})"
    epochs = spec.experiment.budget.epochs_total
    if epochs is None:
        return None
    return f"pods share no budget of epochs, but got budget.epochs_total={epochs}; use budget.trials and budget.epochs_per_trial"


_Options = TypeVar("_Options", bound=ClusterOptions)


def cluster_options(spec: RunSpec, kind: type[_Options]) -> _Options:
    """Return the checked options of a run on a cluster.

    Raises:
        ExperimentError: an option is unknown, has a wrong value, or is missing.
    """
    values = checked_options(spec, kind)
    if "image" not in values:
        raise ExperimentError(
            "platform 'kubernetes' needs option `image`: the trials' image, e.g. registry.example/tuneoff@sha256:..."
        )
    nowhere = [name for name in _IN_NAMESPACE if name in values and "namespace" not in values]
    if nowhere:
        raise ExperimentError(
            f"option {', '.join(nowhere)} must name something in the run's namespace, but one that the run makes is empty; "
            "give option `namespace` too: an existing one that has it"
        )
    return kind(**values)


def checked_options(spec: RunSpec, kind: type[ClusterOptions]) -> dict[str, Any]:
    """Return the checked values of the options that a run gives; `kind` has their names.

    Raises:
        ExperimentError: an option is unknown, or has a wrong value.
    """
    names = [entry.name for entry in fields(kind)]
    if problem := unknown_option(f"adapter {spec.adapter!r}", spec.options, names):
        raise ExperimentError(problem)
    return {name: _checked(name, value) for name, value in spec.options.items() if value is not None}


def _checked(name: str, value: Any) -> Any:
    """Return an option's value as `KatibOptions` keeps it."""
    if name in TIMES:
        if not is_finite(value) or value <= 0:
            raise ExperimentError(f"option `{name}` must be a number of seconds > 0, but got {value!r}")
        return float(value)
    if name == "node_selector":
        return _labels(name, value)
    pattern, rule = _RULES.get(name, (_TEXT, "a text without blanks at its ends"))
    if not isinstance(value, str) or not pattern.fullmatch(value):
        raise ExperimentError(f"option `{name}` must be {rule}, but got {value!r}")
    return Path(value).expanduser() if name == "kubeconfig" else value


def _labels(name: str, value: Any) -> dict[str, str]:
    if not isinstance(value, Mapping):
        raise ExperimentError(f"option `{name}` must be a mapping of labels, e.g. {{pool: trials}}, but got {value!r}")
    for key, text in value.items():
        good = isinstance(key, str) and _LABEL_KEY.fullmatch(key)
        if not good or not isinstance(text, str) or len(text) > 63 or not _LABEL_VALUE.fullmatch(text):
            raise ExperimentError(
                f"option `{name}` must have labels (text: text, quote numbers and true), but got {key!r}: {text!r}"
            )
    return dict(value)
