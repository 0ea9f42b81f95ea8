"""What all pods of one execution have in common, whoever makes them: names, labels, image, limits, environment. Frozen."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

from tuneoff.base.code_digest import code_digest
from tuneoff.base.process_limits import thread_environment
from tuneoff.base.processes import MARK
from tuneoff.experiment.spec import Workers
from tuneoff.experiment.trial_context import TrialContext
from tuneoff.record.run_context import RunContext
from tuneoff_adapters.kubernetes.checkpoint_lines import LOG_BYTES
from tuneoff_adapters.kubernetes.layout import (
    CACHE_VARIABLE,
    CONFIG_DIR,
    CONFIG_DIR_VARIABLE,
    DATA_DIR,
    RUN_DIR,
    RUN_DIR_VARIABLE,
)
from tuneoff_adapters.kubernetes.options import ClusterOptions

LABEL = "tuneoff.io/execution"  # on everything that is ours; its value is the execution id
GRACE_SECONDS = 1  # between SIGTERM and SIGKILL: a trial has nothing to put away
MEGABYTE = 10**6


@dataclass(frozen=True, slots=True, kw_only=True)
class PodPlan:
    """One execution in a cluster."""

    execution_id: str
    namespace: str
    is_own_namespace: bool  # made and deleted by the execution; else it is there, and others may use it
    namespace_labels: Mapping[str, str]  # that a namespace must have besides those of everything
    config_map: str  # its name, with which the names of all that is made begin; at most 40 characters, begins with a letter
    labels: Mapping[str, str]
    workers: Workers
    trial_context: TrialContext  # as the pods read it
    image: str
    image_pull_secret: str | None  # the name of a Secret in the namespace
    service_account: str | None
    node_selector: Mapping[str, str]
    device_resource: str | None
    data_claim: str | None  # of a PersistentVolumeClaim in the namespace with a prepared cache folder
    environment: Mapping[str, str]  # of the pod's process
    checkpoint_bytes: int  # the largest checkpoint that a pod passes through its log
    code: str | None  # the code_digest of this tuneoff, for pods whose image may have another; None: they run this one


def pod_plan(context: RunContext, options: ClusterOptions, namespace_labels: Mapping[str, str]) -> dict[str, Any]:
    """Return the fields of a `PodPlan`: equal in every process that has the execution's context."""
    workers = context.spec.experiment.workers
    return {
        "execution_id": context.execution_id,
        "namespace": options.namespace or f"tuneoff-{context.execution_id.lower()}",
        "is_own_namespace": options.namespace is None,
        "namespace_labels": namespace_labels,
        "config_map": f"r{context.execution_id.lower()}",  # of an Experiment too: Katib mixes up the trials of two of one name
        "labels": {LABEL: context.execution_id},
        "workers": workers,
        # as the pods read it: one trial in its own folder, whose budget and limits others keep
        "trial_context": replace(
            context.trial_context,
            run_dir=RUN_DIR,
            trials=1,
            epochs_total=None,
            wall_clock_seconds=None,
            slots=1,
            memory_bytes=None,
            limits=(),
            events_to_stdout=True,
        ),
        "image": options.image or "",
        "image_pull_secret": options.image_pull_secret,
        "service_account": options.service_account,
        "node_selector": dict(options.node_selector),
        "device_resource": options.device_resource,
        "data_claim": options.data_claim,
        "environment": {
            CONFIG_DIR_VARIABLE: CONFIG_DIR,
            RUN_DIR_VARIABLE: RUN_DIR,
            MARK: context.execution_id,
            **thread_environment(workers.threads),
            **({} if options.data_claim is None else {CACHE_VARIABLE: DATA_DIR}),
        },
        "checkpoint_bytes": LOG_BYTES,
        "code": code_digest(),
    }


def memory_bytes(workers: Workers) -> int | None:
    """Return the memory of one worker in bytes, rounded up; None: no limit."""
    return None if workers.memory_mb is None else math.ceil(Decimal(repr(workers.memory_mb)) * MEGABYTE)
