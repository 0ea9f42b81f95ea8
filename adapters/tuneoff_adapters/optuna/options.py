"""Options: those about a cluster, where the study is stored, and the plan that follows from them. Imports no Optuna."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tuneoff.adapter import Option
from tuneoff.base.commands import install_command
from tuneoff.base.packages import installed_version, missing_modules, release
from tuneoff.base.targets import unknown_option
from tuneoff.errors import ExperimentError
from tuneoff.experiment.strategies import LISTED, release_refusal
from tuneoff.experiment.translation import ListTranslation, translation_of
from tuneoff.run.pool_adapter import platform_of
from tuneoff_adapters.optuna.offers import CAPABILITIES
from tuneoff_adapters.optuna.plan import JOURNAL, Storage, StudyPlan

if TYPE_CHECKING:
    from tuneoff.experiment.spec import ExperimentSpec, RunSpec

FILES = ("journal", "sqlite")
SERVERS = ("postgresql", "redis", "grpc", "mlflow")
SCHEMES = ("postgresql", "postgresql+psycopg", "postgresql+psycopg2", "redis", "grpc", "mlflow+http", "mlflow+https")
SETTINGS = ("sslmode", "sslrootcert", "sslcert", "sslkey", "connect_timeout", "socket_timeout")  # after a URL's ?
LOCKS = ("flock", "open", "symlink")
WITH_HEARTBEAT = ("sqlite", "postgresql")  # of Optuna's storages, `RDBStorage` alone has one
MLFLOW_TRIALS = 1000  # of which MLflow's storage reads no more
PROTOBUF = "5.28.1"  # the oldest that the code generated for Optuna's proxy accepts
_SETTING = rf"(?:{'|'.join(SETTINGS)})=[\w./-]+"
_URL = re.compile(  # so narrow that SQLAlchemy, Redis and a reader find the same parts in it, and a password in none
    r"[a-z0-9+]+://(?:[\w.%+-]*(?::(?:\$\w+|\$\{\w+\}))?@)?"  # user:$NAME@
    rf"(?:[\w.-]+|\[[\da-fA-F:.]+\])(?::(?P<port>\d{{1,5}}))?(?:/[\w.%-]*)?(?:\?{_SETTING}(?:&{_SETTING})*)?",
    re.ASCII,
)


def storage_of(value: Any) -> Storage:
    """Return option `storage`: a kind, a URL, or a mapping with one of them.

    Raises:
        ExperimentError: it is none that Optuna has, or its parts do not fit together.
    """
    parts = (
        dict(value) if isinstance(value, Mapping) else {} if value is None else {"url" if ":" in str(value) else "kind": value}
    )
    if unknown := unknown_option("option `storage`", parts, ("kind", "url", "lock", "managed", "heartbeat_seconds")):
        raise ExperimentError(unknown)
    url = parts.get("url")
    if url is not None:
        parts.setdefault("kind", _kind_of(url))
    storage = Storage(**parts)
    if problem := _problem(storage):
        raise ExperimentError(f"option `storage`: {problem}, but got {value if url is None else 'a URL of ' + storage.kind!r}")
    return storage


def _kind_of(url: Any) -> str:
    scheme = str(url).partition(":")[0]
    kind = scheme.partition("+")[0]
    if not isinstance(url, str) or scheme not in SCHEMES or "://" not in url:
        raise ExperimentError(
            "option `storage`: a URL must begin with postgresql+psycopg://, redis://, grpc:// or mlflow+http://, but it begins "
            f"with {scheme!r}; files are named by `kind` alone: {', '.join(FILES)}"
        )
    return kind


def _problem(storage: Storage) -> str | None:
    """Return the rule that does not hold, or None."""
    kind, url, seconds = storage.kind, storage.url, storage.heartbeat_seconds
    if kind not in (*FILES, *SERVERS):
        return f"`kind` must be one of {', '.join((*FILES, *SERVERS))}"
    if storage.lock not in LOCKS or (storage.lock != JOURNAL.lock and kind != "journal"):
        return f"`lock` must be one of {', '.join(LOCKS)}, and only a journal has it"
    if not isinstance(storage.managed, bool):
        return "`managed` must be true or false"
    if (kind in SERVERS) != (storage.managed != (url is not None)) or (kind in FILES and storage.managed):
        return f"a server ({', '.join(SERVERS)}) needs either its URL or `managed: true`, and a file has neither"
    if seconds is not None and not (kind in WITH_HEARTBEAT and Option(type="integer", least=1).admits(seconds)):
        return f"`heartbeat_seconds` must be an integer >= 1, and is of {', '.join(WITH_HEARTBEAT)} alone"
    if url is not None:
        # the rule, without the URL: there may be a password in it
        match = _URL.fullmatch(url)
        if kind != _kind_of(url) or match is None or int(match["port"] or kind != "grpc") not in range(1, 65536):
            return (
                "a URL must be SCHEME://USER:$NAME@HOST:PORT/DATABASE (needed: scheme, host, for grpc the port), and fit to "
                "`kind`; it must have no password itself, as results keep it: write $NAME, and set that variable; "
                f"after ? it may have {', '.join(SETTINGS)}"
            )
    return None


def storage_refusal(spec: RunSpec) -> str | None:
    """Return why a run cannot have its storage here, or None."""
    platform, place = platform_of(spec.platform), f"platform {spec.platform!r}"
    value = spec.options.get("storage")
    storage = storage_of(value)
    if platform.run_folder != "none":
        if platform.run_folder == "shared" and (storage.managed or storage.kind == "sqlite" or storage.heartbeat_seconds):
            return (
                f"on {place} Optuna's storage must be a journal in the shared results folder, or a server at a URL that every "
                "host reaches, without Optuna's heartbeat (a worker's end is seen by itself)"
            )
        experiment = spec.experiment
        enqueues = experiment.sampler.name in LISTED or experiment.configurations or experiment.failures.retries > 0
        refusal = release_refusal("Optuna's gRPC proxy", "4.2" if storage.kind == "grpc" else "", spec, CAPABILITIES)
        refusal = refusal or (None if spec.environment is not None else _package_refusal(storage))
        if refusal:
            return refusal
        if enqueues and storage.kind == "sqlite" and experiment.workers.count > 1:
            return (
                "Optuna over SQLite may give an enqueued configuration to two workers (it locks no rows), so samplers fixed and "
                "grid, first configurations and retries need one, but got workers.count="
                f"{experiment.workers.count}; use another storage"
            )
        if storage.kind == "mlflow" and (problem := _mlflow_refusal(experiment)):
            return f"Optuna over MLflow {problem}; use another storage"
        if storage.managed:
            from tuneoff_adapters.optuna.servers import server_refusal

            return server_refusal(storage.kind)
        return None
    if not platform.changes.get("long_lived_workers", True):
        return f"a worker of Optuna asks for one trial after another, but {place} has one process per trial; use another platform"
    if not isinstance(value, str) or storage.kind != "postgresql":
        return (
            f"{place} of Optuna needs option `storage`: the URL of a PostgreSQL database that its pods and this machine reach, "
            f"e.g. postgresql+psycopg://tuneoff:$PGPASSWORD@db.example/optuna, but got {value!r}"
        )
    return _package_refusal(storage, "kubernetes")


def _mlflow_refusal(experiment: ExperimentSpec) -> str | None:
    workers, retries, trials = experiment.workers.count, experiment.failures.retries, experiment.budget.trials
    if workers > 1:
        return f"may give two workers one number or enqueued configuration, so it needs one, but got workers.count={workers}"
    if retries:
        return f"loses the parameters of a worker that dies, so it needs failures.retries=0, but got {retries}"
    return f"reads {MLFLOW_TRIALS} trials of a study, but got budget.trials={trials}" if trials > MLFLOW_TRIALS else None


def storage_extras(storage: Storage) -> str:
    """Return the extras of tuneoff that a storage needs; "" for one in a file."""
    extras = "grpc,postgresql" if storage.kind == "grpc" and storage.managed else storage.kind
    return extras if storage.kind in SERVERS else ""


def _package_refusal(storage: Storage, extra: str | None = None) -> str | None:
    """Return which package is missing, or contradicts another one that is installed; None: all are there."""
    modules = {"redis": ("redis",), "grpc": ("grpc", "google"), "mlflow": ("mlflow",)}.get(storage.kind, ())
    if storage.kind == "postgresql" or (storage.kind == "grpc" and storage.managed):
        modules += ((storage.url or "").partition(":")[0].partition("+")[2] or "psycopg",)
    if missing := missing_modules(modules):
        extras = extra or storage_extras(storage)
        return f"option `storage` of Optuna needs {', '.join(missing)}; run: {install_command(f'tuneoff[optuna,{extras}]')}"
    installed = installed_version("protobuf")
    if storage.kind == "grpc" and installed is not None and release(installed) < release(PROTOBUF):
        pin = installed_version("kubeflow-katib")
        because = f"; kubeflow-katib {pin} allows none from 5 on" if pin else ""
        return (
            f"Optuna's gRPC proxy needs protobuf >= {PROTOBUF}, but {installed} is installed{because}; use an environment "
            "of its own without extra katib; in the clone: "
            "python -m venv ENVIRONMENT && ENVIRONMENT/bin/pip install '.[optuna,grpc,postgresql]'"
        )
    return None


def study_plan(spec: RunSpec, folder: Path, storage: Storage = JOURNAL, study_name: str | None = None) -> StudyPlan:
    """Return the plan of a run whose framework files lie in `folder`.

    `study_name`: in a storage that others use too; None: it has its own.
    """
    experiment = spec.experiment
    translation = translation_of(spec)
    return StudyPlan(
        folder=str(folder.resolve()),
        # Hyperband hashes it: the same run has the same brackets
        study_name=study_name or f"tuneoff-{spec.sampler_seed}",
        storage=storage,
        is_in_pods=platform_of(spec.platform).run_folder == "none",
        is_on_hosts=platform_of(spec.platform).run_folder == "shared",
        mode=experiment.objective.mode,
        metric=experiment.objective.metric,
        epochs=experiment.budget.epochs_per_trial,
        trials=experiment.budget.trials,
        translation=translation,
        listed=isinstance(translation, ListTranslation),
        sampler=experiment.sampler,
        pruner=experiment.pruner,
        stops=dict(experiment.stops) if experiment.pruner.name == "scripted" else {},
        seed=spec.sampler_seed,
        goal=experiment.objective.goal if experiment.objective.stop else None,
    )
