"""Where things lie in a pod, and what they are called there. The pod's program reads it too, so it imports nothing."""

from __future__ import annotations

CONTAINER = "training-container"
POD_MODULE = "tuneoff_adapters.katib.pod"

CONFIG_DIR = "/etc/tuneoff"  # where the config map is mounted
CONTEXT_KEY = "trial_context.json"  # core's TrialContext
TRANSLATION_KEY = "translation.json"  # KatibSpace.to_json(), and the settings below
WORKER_MODULE = "tuneoff_adapters.kubernetes.worker"
WORKER_KEY = "worker"  # what a worker runs, by `messages.packed`
STOPS, CHECKPOINT_BYTES, CODE = "stops", "checkpoint_bytes", "code"

RUN_DIR = "/tuneoff/run"  # the pod's own run folder, an emptyDir
TEMPORARY_DIR = "/tmp"  # an emptyDir: all else of the root file system is read-only
DATA_DIR = "/data"  # where the claim with the data is mounted
METRICS_FILE = "/var/log/katib/metrics.log"  # Katib's webhook mounts a volume at its folder

CONFIG_DIR_VARIABLE = "TUNEOFF_POD_CONFIG"
RUN_DIR_VARIABLE = "TUNEOFF_POD_DIR"
METRICS_FILE_VARIABLE = "TUNEOFF_METRICS_FILE"
CACHE_VARIABLE = "TUNEOFF_CACHE_DIR"  # where a trial looks for prepared data: it never prepares any itself

OTHER_CODE = "other_code"  # flag of a pod
EARLY_STOPPED = "Training Container was Early Stopped"  # what Katib's shell says in the log of a trial with stop rules
FAILED = "Training Container was Failed"

OBJECTIVE = "objective"  # what the objective is called in Katib, whatever the workload calls it


def trial_id(katib_trial: str) -> str:
    """Return tuneoff's id of a trial: what Katib put after the experiment's name."""
    return katib_trial.rpartition("-")[2]
