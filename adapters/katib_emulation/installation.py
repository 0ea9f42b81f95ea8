"""What an installed Katib looks like through the API: its deployments and webhooks, all marked `emulated`."""

from __future__ import annotations

import base64

from katib_emulation.admission import DEFAULTER, INJECTION_LABEL
from katib_emulation.collector import POD_WEBHOOK
from katib_emulation.errors import VALIDATOR
from katib_emulation.objects import DEPLOYMENTS, MUTATING_WEBHOOKS, NAMESPACES, VALIDATING_WEBHOOKS, Object, set_condition
from katib_emulation.store import Store

NAMESPACE = "kubeflow"
COMPONENTS = ("katib-controller", "katib-db-manager")
WEBHOOKS = {VALIDATING_WEBHOOKS: (VALIDATOR,), MUTATING_WEBHOOKS: (DEFAULTER, POD_WEBHOOK)}
_CA_BUNDLE = base64.b64encode(b"emulated: no webhook is called over TLS\n").decode()


def install(store: Store) -> None:
    """Create what is missing of it."""
    store.update(NAMESPACES, NAMESPACE, None, lambda obj: obj["metadata"].update(labels={INJECTION_LABEL: "enabled"}))
    for name in COMPONENTS:
        container = {"name": name, "image": f"emulated/{name}:v0.19.0-emulated"}
        deployment: Object = {"metadata": {"name": name}, "spec": {"template": {"spec": {"containers": [container]}}}}
        set_condition(deployment, "Available", "MinimumReplicasAvailable", "Deployment has minimum availability.")
        store.ensure(DEPLOYMENTS, deployment, NAMESPACE)
    for kind, names in WEBHOOKS.items():
        webhooks = [{"name": name, "clientConfig": {"caBundle": _CA_BUNDLE}} for name in names]
        store.ensure(kind, {"metadata": {"name": "katib.kubeflow.org"}, "webhooks": webhooks})
