"""What `tuneoff doctor` asks the kubeconfig's cluster: does it answer, does Katib run there, may its user run trials?"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from tuneoff.adapter import Finding
from tuneoff.base.packages import installed_version
from tuneoff.errors import MissingPackageError, StepError
from tuneoff_adapters.katib.checks import check_client, katib_needs
from tuneoff_adapters.katib.offers import CAPABILITIES
from tuneoff_adapters.katib.options import KatibOptions
from tuneoff_adapters.kubernetes.checks import Needs, check_cluster
from tuneoff_adapters.kubernetes.connection import Connection
from tuneoff_adapters.kubernetes.doctor import kubeconfigs
from tuneoff_adapters.kubernetes.pool import POOL_RIGHTS

SECONDS = 4.0  # per line
_NAMESPACE = "tuneoff-doctor"  # of a run's own kind; nothing is made


def checks(image: str | None) -> Iterator[Finding]:
    """Check the client beside the SDK, and ask the kubeconfig's cluster, if one is named, a line each. Makes nothing.

    What `tuneoff_adapters.kubernetes.doctor` checks comes before it, by the adapters that have pods without Katib.
    """
    try:
        if installed_version(CAPABILITIES.package) is not None:
            check_client()
    except MissingPackageError as error:
        yield Finding(id="conflict kubernetes", verdict="failed", text=str(error), exit_code=error.exit_code)
    if not kubeconfigs()[1]:
        return
    try:
        connection = Connection(None)  # which may start a program for the credentials: once
    except StepError:
        return  # no kubeconfig names a cluster that could be asked; why not, its own line says
    whole = katib_needs(KatibOptions(), is_listed=True)
    nothing = Needs(is_own_namespace=True, rights=())

    def line(name: str, needs: Needs, text: Callable[[str, str | None], str]) -> Finding:
        try:
            return Finding(id=name, verdict="passed", text=text(*check_cluster(connection, needs, _NAMESPACE, SECONDS)))
        except StepError as error:
            return Finding(id=name, verdict="warning", text=str(error))

    first = line("cluster", nothing, lambda version, _: f"Kubernetes {version} answers at {connection.host}")
    yield first
    if first.verdict == "passed":
        katib, rights = replace(nothing, reads=whole.reads, judge=whole.judge), (*whole.rights, *POOL_RIGHTS)
        yield line("katib", katib, lambda _, controller: f"runs there ({controller or 'its image may not be read'})")
        all_may = "the kubeconfig's user may run trials, with Katib and without"
        yield line("cluster rights", replace(nothing, rights=rights), lambda *_: all_may)
    connection.close()
