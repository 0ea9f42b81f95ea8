"""What deploy checks before anything is created."""

from __future__ import annotations

from dataclasses import dataclass

from tuneoff_adapters.katib.connection import Connection
from tuneoff_adapters.katib.options import KatibOptions


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """What the checks learnt, for the record."""

    server_version: str  # e.g. "v1.31.2"
    katib_image: str | None  # the controller's image, where it may be read


def check_client() -> None:
    """Raise MissingPackageError where the installed kubernetes client breaks the SDK (>= 36)."""


def check_cluster(connection: Connection, options: KatibOptions, namespace: str, within_seconds: float = 14.0) -> Cluster:
    """Raise StepError in one line where the cluster cannot take a run; creates nothing. `namespace`: the one to be made."""
    raise NotImplementedError
