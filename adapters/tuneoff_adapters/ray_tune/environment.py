"""The environment of a run's Ray: what is set before Ray is imported, what is removed, and why."""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tuneoff.base.findings import Finding
from tuneoff.record.environment import SECRET_NAME

SETTINGS: Mapping[str, str] = {
    "RAY_AUTH_MODE": "token",  # else Ray writes a token into the home folder
    "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",  # single-machine mode: every port listens on loopback only
    "RAY_USAGE_STATS_ENABLED": "0",  # sends no usage statistics; asks the cloud's metadata service all the same: `doctor`
    "RAY_gcs_rpc_server_reconnect_timeout_s": "10",  # after a lost head, which is not restarted; Ray waits 60 s
    "RAY_CHDIR_TO_TRIAL_DIR": "0",  # a trial keeps the run's working directory, as in every other framework
    "RAY_worker_niceness": "0",  # Ray runs workers at niceness 15, so any other load would slow Ray alone
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",  # trials see the same devices as in every other framework
    "RAY_AIR_NEW_OUTPUT": "0",  # no progress tables in the log
    "RAY_TRAIN_ENABLE_V2_MIGRATION_WARNINGS": "0",  # about an interface that is not used
    "TUNE_DISABLE_STRICT_METRIC_CHECKING": "1",  # a trial without a result must not end the whole run
    "TUNE_DISABLE_AUTO_CALLBACK_LOGGERS": "1",  # core's events are the record: no CSV, JSON and TensorBoard files per trial
    "TUNE_PRINT_ALL_TRIAL_ERRORS": "0",  # a failed trial is a record, not a traceback
    "TUNE_DISABLE_SIGINT_HANDLER": "1",  # the supervisor decides what Ctrl-C means
    "TUNE_GLOBAL_CHECKPOINT_S": "1000000000",  # Tune's state serves `Tuner.restore` alone, which is not used: at the end
    "TUNE_WARN_THRESHOLD_S": "60",  # a busy machine is not a warning
}
REMOVED = (
    "RAY_ADDRESS",  # it would attach the run to a foreign cluster
    "RAY_AUTH_TOKEN_PATH",  # the run has its own token
    "RAY_TMPDIR",  # the run has its own temporary folder
    "RAY_JOB_CONFIG_JSON_ENV_VAR",  # it would make the run part of a foreign job
    "TUNE_RESULT_DIR",  # Ray ends a run where it is set; Tune's files are in the run's own folder
    "TUNE_RESULT_BUFFER_LENGTH",  # with a buffer a trial trains on past a decision to stop it
    "TUNE_MAX_PENDING_TRIALS_PG",  # the searcher bounds how many trials wait: none
    "TUNE_FORCE_TRIAL_CLEANUP_S",  # hung trials are the supervisor's
    "TUNE_MAX_LEN_IDENTIFIER",  # folders of trials have short names
    "_TEST_TUNE_TRIAL_UUID",  # trial ids of Ray must differ between runs
)
TOKEN = "RAY_AUTH_TOKEN"
OF_ONE_MACHINE = ("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "RAY_gcs_rpc_server_reconnect_timeout_s")  # a cable may be out for longer
OF_A_CLUSTER = ("RAY_AUTH_MODE", TOKEN, "RAY_AUTH_TOKEN_PATH")  # that is there: what the user says of it holds
CLUSTER_FILE = "~/ray_bootstrap_config.yaml"  # where Ray looks for its cloud before it asks the metadata service
_PLAIN = re.compile(r"[+-]?[\d.]+(?:e[+-]?\d+)?|true|false", re.IGNORECASE)
WITHHELD = "set"


def prepare_environment(on_cluster: bool = False, own_token: bool = True) -> dict[str, Any]:
    """Set and remove the variables, with a new random token, and return what was done, for the record, without the token.

    `inherited` are the other variables of Ray and Tune that the user's environment has: they stay in force. Their values are
    recorded where they are numbers, true or false, and the name is not that of a secret. `own_token` False: the user's are for
    a cluster's token.
    """
    user_values = {} if own_token else {name: os.environ[name] for name in OF_A_CLUSTER if name in os.environ}
    settings = {name: value for name, value in SETTINGS.items() if not (on_cluster and name in OF_ONE_MACHINE)}
    removed = [name for name in REMOVED if os.environ.pop(name, None) is not None]
    os.environ.update(settings)
    if own_token:
        os.environ[TOKEN] = secrets.token_hex(32)
    os.environ.update(user_values)
    return {
        "set": {name: os.environ[name] for name in settings if name not in user_values},
        "removed": sorted(name for name in removed if name not in user_values),
        "inherited": {
            name: value
            if name in REMOVED or name in SETTINGS or (_PLAIN.fullmatch(value) is not None and SECRET_NAME.search(name) is None)
            else WITHHELD
            for name, value in sorted(os.environ.items())
            if name.startswith(("RAY_", "TUNE_")) and (name not in SETTINGS or name in user_values) and name != TOKEN
        },
    }


def doctor(image: str | None = None) -> Iterator[Finding]:
    """Say whether Ray asks the metadata service of a cloud: at each start, whatever its variables say (2.60: no switch)."""
    file = Path(CLUSTER_FILE).expanduser()
    if file.exists():
        text = f"{file} is there, so a start of Ray asks no cloud's metadata service"
        yield Finding(id="ray's requests", verdict="passed", text=text)
        return
    text = "each start of Ray asks 169.254.169.254 and metadata.google.internal whether this is a cloud, and sends nothing else"
    yield Finding(id="ray's requests", verdict="warning", text=f"{text}; to stop that, run: echo '{{}}' > {CLUSTER_FILE}")
