"""What the coordinator and its workers agree on: data, sent to the workers once. Imports no framework."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING
from urllib.parse import quote

from tuneoff.base.identity import derive_seed
from tuneoff.errors import UserError

if TYPE_CHECKING:
    from tuneoff.experiment.spec import Strategy
    from tuneoff.experiment.translation import Translation
    from tuneoff.workload import Mode

RETRY_OF, RETRY_ATTEMPT = "tuneoff_trial", "tuneoff_attempt"  # user attributes, of retries only
STOPS_AT_GOAL = "optuna.study.Study.stop in a callback of each worker"
_NAME = re.compile(r"\$(?:(\w+)|\{(\w+)\})", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class Storage:
    """Where a study is stored. A server is at `url`, or `managed`: started by the run, on a Unix socket, and ended by it."""

    kind: str = "journal"
    lock: str = "flock"  # of a journal file
    url: str | None = None  # its password is a $NAME, which stands for a variable of the environment
    managed: bool = False
    heartbeat_seconds: int | None = None  # of Optuna's own heartbeat; a trial that is silent for two of them is failed by it

    @property
    def is_shared(self) -> bool:
        """Whether it outlives the run, and others may use it too."""
        return self.url is not None and not self.managed

    def at(self, url: str | None) -> Storage:
        """Return it with the address of its server, $NAME replaced.

        Raises:
            UserError: the environment has no such variable.
        """

        def value(match: re.Match[str]) -> str:
            name = match[1] or match[2]
            if name not in os.environ:
                raise UserError(f"option `storage` names ${name}, which the environment must have; set it")
            return quote(os.environ[name], safe="")

        return replace(self, url=_NAME.sub(value, url or ""))


JOURNAL = Storage()


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyPlan:
    """One study: where it is stored, what it optimizes, with which sampler and pruner."""

    folder: str  # absolute; holds the journal or SQLite's file, and this adapter's own small files
    study_name: str
    mode: Mode
    metric: str
    epochs: int
    trials: int  # to be asked for
    translation: Translation
    listed: bool  # the configurations are given (fixed, grid): enqueued, never sampled
    sampler: Strategy
    pruner: Strategy
    stops: Mapping[str, int]  # configuration digest -> last epoch, for `scripted`
    seed: int
    goal: float | None = None  # at which the run ends
    storage: Storage = JOURNAL
    is_in_pods: bool = False  # the workers run in pods: then the coordinator counts the asks
    is_on_hosts: bool = False  # they run on several hosts, and have this folder there

    @property
    def journal(self) -> str:
        return f"{self.folder}/journal.log"

    @property
    def database(self) -> str:
        """The file of SQLite."""
        return f"{self.folder}/study.db"

    @property
    def asks(self) -> str:
        """The file that counts the asks of all workers."""
        return f"{self.folder}/asks"

    def state_path(self, worker: int) -> str:
        """Return the file in which a worker says what it is doing."""
        return f"{self.folder}/worker-{worker}"

    def sampler_seed(self, worker: int, generation: int) -> int:
        """Return the seed of a worker's own sampler; a worker started again draws other configurations than before."""
        return derive_seed("optuna", self.seed, worker, generation)


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """Coordinator to worker: make `repeats` asks that need no ticket, then ask for as long as there are tickets."""

    generation: int
    repeats: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """Worker to coordinator: the order is carried out. `budget_over`: core refused or cancelled a trial, so ask no more.

    `leaves`: the worker whose process leaves before that, with `repeats` to be made by the one in its place.
    """

    budget_over: bool
    leaves: int | None = None
    repeats: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Broken:
    """Worker to coordinator: Optuna (or its storage) raised."""

    text: str
    is_infrastructure: bool = False  # the machine is to blame, not Optuna
