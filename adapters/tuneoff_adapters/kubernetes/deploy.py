"""The begin of a run on a cluster: it is looked at, and what the pods read is made there."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tuneoff.record.run_context import RunContext
from tuneoff_adapters.kubernetes.checks import Needs, reach
from tuneoff_adapters.kubernetes.connection import Connection
from tuneoff_adapters.kubernetes.create import create_config_map, objects_of
from tuneoff_adapters.kubernetes.plan import PodPlan
from tuneoff_adapters.kubernetes.removal import leftover_text
from tuneoff_adapters.kubernetes.resources import Object


def deploy_config_map(
    context: RunContext,
    connect: Callable[[], Connection],
    plan: PodPlan,
    needs: Needs,
    content: Callable[[], Object],
    outside: Path,
    *,
    has_experiment: bool,
) -> tuple[Connection, Object]:
    """Reach the API server, check that it can take a run, and make the config map that its pods read; return both.

    `outside`: a file that is there while something of this run may be in the cluster; made before it.
    """
    connection, (server_version, katib_image) = reach(connect, needs, plan.namespace)
    versions = {"kubernetes": server_version, "katib_image": katib_image, "image": plan.image}
    context.note_versions({name: version for name, version in versions.items() if version is not None})
    emulated = next((text for text in (server_version, katib_image) if text and "emulated" in text), None)
    if emulated is not None:
        text = f"the API server at {connection.host} is an emulation (it says {emulated}): the figures are not a cluster's"
        context.flag("emulated_platform", text)
    with outside.open("a") as file:
        file.write(leftover_text(objects_of(plan, has_experiment), connection.host) + "\n")
    return connection, create_config_map(connection, plan, content())
