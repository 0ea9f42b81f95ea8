"""The adapter's options on a cluster. Imports neither Optuna nor a database's driver."""

from __future__ import annotations

from dataclasses import dataclass

from tuneoff.base.packages import install_command, missing_modules
from tuneoff.experiment.spec import RunSpec
from tuneoff_adapters.kubernetes.options import KUBERNETES, ClusterOptions


@dataclass(frozen=True, slots=True, kw_only=True)
class OptunaOptions(ClusterOptions):
    """What can be set on platform kubernetes."""

    storage: str | None = None  # URL of a PostgreSQL database that pods and this machine reach; $NAMEs are taken from here


def storage_refusal(spec: RunSpec) -> str | None:
    """Return why a run on a cluster has no database, or None."""
    if spec.platform != KUBERNETES:
        return None
    storage = spec.options.get("storage")
    if not isinstance(storage, str) or not storage.startswith("postgresql"):
        return (
            "platform 'kubernetes' of Optuna needs option `storage`: the URL of a PostgreSQL database that its pods and this "
            f"machine reach, e.g. postgresql+psycopg://tuneoff:$PGPASSWORD@db.example/optuna, but got {storage!r}"
        )
    if missing_modules(("psycopg",)):
        return f"option `storage` of Optuna needs psycopg; run: {install_command('tuneoff[optuna,kubernetes]')}"
    return None
