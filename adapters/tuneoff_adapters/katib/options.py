"""The adapter's options: what a person writes under `options:` of a katib entry. Imports neither the SDK nor its clients."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tuneoff.errors import ExperimentError
from tuneoff_adapters.kubernetes.options import TIMES, ClusterOptions, checked_options, cluster_options

if TYPE_CHECKING:
    from tuneoff.experiment.spec import RunSpec

EMULATED = "emulated"
EMULATION = "katib_emulation"  # the module that serves it, of a distribution of its own


@dataclass(frozen=True, slots=True, kw_only=True)
class KatibOptions(ClusterOptions):
    """What can be set about the cluster. On `emulated` only the two times can: the rest has no meaning there."""

    katib_namespace: str = "kubeflow"  # where Katib's own controller runs


def katib_options(spec: RunSpec) -> KatibOptions:
    """Return the checked options of a run.

    Raises:
        ExperimentError: an option is unknown, has a wrong value, is missing, or has no meaning on the platform.
    """
    if spec.platform != EMULATED:
        return cluster_options(spec, KatibOptions)
    values = checked_options(spec, KatibOptions)
    meaningless = sorted(set(values) - set(TIMES))
    if meaningless:
        raise ExperimentError(
            f"platform 'emulated' makes its own cluster, so option {', '.join(meaningless)} has no meaning there; "
            "remove it, or use platform 'kubernetes'"
        )
    return KatibOptions(**values)
