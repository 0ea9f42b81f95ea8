"""The kinds of objects that the emulated API server keeps, under the names of the Kubernetes API."""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class Kind:
    """One resource of the API: `/apis/GROUP/VERSION/[namespaces/NS/]PLURAL`, or `/api/v1/...` where the group is empty."""

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool

    @property
    def api_version(self) -> str:
        """What objects of this kind carry as `apiVersion`."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def resource(self) -> str:
        """The name in messages and reviews, as in `experiments.kubeflow.org`; plain `pods` for the core group."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def title(self) -> str:
        """The name in messages of refused objects, as in `Experiment.kubeflow.org`."""
        return f"{self.kind}.{self.group}" if self.group else self.kind


KATIB_GROUP, KATIB_VERSION = "kubeflow.org", "v1beta1"
NEXT_KATIB_VERSION = "v1"  # one that Katib v0.19 does not have, to try what happens then
NO_KATIB = "none"  # in place of a version: Katib is not installed
KATIB_VERSIONS = (KATIB_VERSION, NEXT_KATIB_VERSION, NO_KATIB)

EXPERIMENTS = Kind(KATIB_GROUP, KATIB_VERSION, "experiments", "Experiment", True)
TRIALS = Kind(KATIB_GROUP, KATIB_VERSION, "trials", "Trial", True)
SUGGESTIONS = Kind(KATIB_GROUP, KATIB_VERSION, "suggestions", "Suggestion", True)
JOBS = Kind("batch", "v1", "jobs", "Job", True)
PODS = Kind("", "v1", "pods", "Pod", True)
EVENTS = Kind("", "v1", "events", "Event", True)
CONFIG_MAPS = Kind("", "v1", "configmaps", "ConfigMap", True)

SERVICES = Kind("", "v1", "services", "Service", True)
SERVICE_ACCOUNTS = Kind("", "v1", "serviceaccounts", "ServiceAccount", True)

DEPLOYMENTS = Kind("apps", "v1", "deployments", "Deployment", True)
ROLES = Kind("rbac.authorization.k8s.io", "v1", "roles", "Role", True)
ROLE_BINDINGS = Kind("rbac.authorization.k8s.io", "v1", "rolebindings", "RoleBinding", True)
NAMESPACES = Kind("", "v1", "namespaces", "Namespace", False)
VALIDATING_WEBHOOKS = Kind(
    "admissionregistration.k8s.io", "v1", "validatingwebhookconfigurations", "ValidatingWebhookConfiguration", False
)
MUTATING_WEBHOOKS = Kind(
    "admissionregistration.k8s.io", "v1", "mutatingwebhookconfigurations", "MutatingWebhookConfiguration", False
)

KINDS: tuple[Kind, ...] = (
    EXPERIMENTS,
    TRIALS,
    SUGGESTIONS,
    JOBS,
    PODS,
    EVENTS,
    CONFIG_MAPS,
    SERVICES,
    SERVICE_ACCOUNTS,
    DEPLOYMENTS,
    ROLES,
    ROLE_BINDINGS,
    NAMESPACES,
    VALIDATING_WEBHOOKS,
    MUTATING_WEBHOOKS,
)

WITH_STATUS = frozenset({EXPERIMENTS, TRIALS, SUGGESTIONS, JOBS, PODS, SERVICES, DEPLOYMENTS, NAMESPACES})
"""The kinds whose status is a subresource, which clients cannot write here: a create or patch leaves it as it is."""


def served_kinds(katib_version: str) -> tuple[Kind, ...]:
    """Return the kinds that a cluster serves whose Katib has this version of the API, which may be none of ours, or NO_KATIB."""
    others = tuple(kind for kind in KINDS if kind.group != KATIB_GROUP)
    if katib_version == NO_KATIB:
        return others
    return tuple(replace(kind, version=katib_version) for kind in KINDS if kind.group == KATIB_GROUP) + others
