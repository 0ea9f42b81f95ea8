"""What `tuneoff doctor` asks the kubeconfig's cluster: does it answer, does Katib run there, may its user run trials?"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tuneoff.adapter import Finding
from tuneoff.errors import StepError
from tuneoff_adapters.katib.checks import katib_needs
from tuneoff_adapters.katib.options import KatibOptions
from tuneoff_adapters.kubernetes.checks import Needs, check_cluster
from tuneoff_adapters.kubernetes.connection import Connection
from tuneoff_adapters.kubernetes.doctor import cluster
from tuneoff_adapters.kubernetes.pool import POOL_RIGHTS

SECONDS = 4.0  # per line
_NAMESPACE = "tuneoff-doctor"  # of a run's own kind; nothing is made


def checks(image: str | None) -> Iterator[Finding]:
    """Ask the kubeconfig's cluster, if one is named, a line each; the second and third only where it answers. Makes nothing.

    What `tuneoff_adapters.kubernetes.doctor` checks comes before it, by the adapters that have pods without Katib.
    """
    if not any(check.verdict == "passed" and not check.text.startswith("none") for check in cluster()):
        return  # no kubeconfig names a cluster that could be asked
    whole = katib_needs(KatibOptions(), is_listed=True)
    nothing = Needs(is_own_namespace=True, rights=())
    try:
        connection = Connection(None)
        version = check_cluster(connection, nothing, _NAMESPACE, SECONDS).server_version
    except StepError as error:
        yield Finding(id="cluster", verdict="warning", text=str(error))
        return
    yield Finding(id="cluster", verdict="passed", text=f"Kubernetes {version} answers at {connection.host}")
    try:
        katib = check_cluster(connection, replace(nothing, reads=whole.reads, judge=whole.judge), _NAMESPACE, SECONDS)
        yield Finding(id="katib", verdict="passed", text=f"runs there ({katib.katib_image or 'its image may not be read'})")
    except StepError as error:
        yield Finding(id="katib", verdict="warning", text=str(error))
    try:
        check_cluster(connection, replace(nothing, rights=(*whole.rights, *POOL_RIGHTS)), _NAMESPACE, SECONDS)
        yield Finding(id="cluster rights", verdict="passed", text="the kubeconfig's user may run trials, with Katib and without")
    except StepError as error:
        yield Finding(id="cluster rights", verdict="warning", text=str(error))
    connection.close()
