"""The adapter: it makes the study, gives orders to the workers, and cleans up after those that die."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

from tuneoff.adapter import Best, Capabilities, import_framework
from tuneoff.errors import InfrastructureError, StepError
from tuneoff.experiment.translation import given_values
from tuneoff.run.pool_adapter import WithPool
from tuneoff.run.trial.run_trial import TrialOutcome
from tuneoff.run.trial.trial_process import Tickets
from tuneoff.workload import workload_at
from tuneoff_adapters.kubernetes.options import JOBS
from tuneoff_adapters.optuna.offers import CAPABILITIES, IN_PODS
from tuneoff_adapters.optuna.options import storage_extras, storage_of, storage_refusal, study_plan
from tuneoff_adapters.optuna.plan import Broken, Finished, Order, Storage, StudyPlan
from tuneoff_adapters.optuna.server_errors import server_away
from tuneoff_adapters.optuna.worker_state import WorkerStateFile
from tuneoff_adapters.optuna_samplers import flag_unused_model
from tuneoff_platforms.time_limits import SETUP_SHARE

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tuneoff.experiment.spec import RunSpec
    from tuneoff.experiment.translation import FrameworkSpace
    from tuneoff.platform import Death
    from tuneoff.record.events.schema import Event
    from tuneoff_adapters.optuna.servers import StorageServer
    from tuneoff_adapters.optuna.worker_recovery import WorkerRecovery

_PRELOAD = {  # what Optuna would import at the first use of a sampler or a storage, inside an ask
    "gp": ("torch", "scipy.optimize", "scipy.stats"),
    "cmaes": ("cmaes",),
    "sobol": ("scipy.stats.qmc",),
    "sqlite": ("optuna.storages._rdb.models",),
    "postgresql": ("optuna.storages._rdb.models", "psycopg"),
    "redis": ("redis",),
    "grpc": ("optuna.storages._grpc.auto_generated.api_pb2_grpc",),
    "mlflow": ("tuneoff_adapters.optuna.mlflow_storage",),
}
WORK = "tuneoff_adapters.optuna.worker:work"
MAX_FRUITLESS_DEATHS = 10  # workers in a row that died before any of them had a trial


class OptunaAdapter(WithPool):
    """Optuna by ask and tell in `workers.count` long-lived processes over one storage."""

    capabilities: ClassVar[Capabilities] = CAPABILITIES
    fault_tools: ClassVar[str] = "tuneoff_faults.frameworks:OPTUNA"
    answers: ClassVar[tuple[type, ...]] = (Finished, Broken)
    foreign_options: ClassVar[frozenset[str]] = WithPool.foreign_options | {"storage"}  # its kind: a URL is not a word
    _server: StorageServer | None = None  # that this run started

    @classmethod
    def platforms(cls) -> tuple[str, ...]:
        """Return them without that of a process per trial: a worker asks for one trial after another."""
        return tuple(name for name in super().platforms() if name != JOBS)

    @classmethod
    def capabilities_on(cls, platform: str) -> Capabilities:
        capabilities = super().capabilities_on(platform)
        return replace(capabilities, **IN_PODS) if cls._on(platform).run_folder == "none" else capabilities

    @classmethod
    def refuse(cls, spec: RunSpec) -> str | None:
        storage_of(spec.options.get("storage"))  # first: a URL with a password is an error, whatever else is wrong
        others = {name: value for name, value in spec.options.items() if name != "storage"}
        return super().refuse(replace(spec, options=others)) or storage_refusal(spec)

    @classmethod
    def requirements(cls, spec: RunSpec) -> tuple[str, ...]:
        extras = storage_extras(storage_of(spec.options.get("storage")))
        return (f"tuneoff[{extras}]",) if extras else ()

    def draw(self, count: int) -> Iterator[Mapping[str, object]]:
        import_framework(self.context.spec.adapter, self.capabilities)
        from tuneoff_adapters.optuna.drawing import draw

        return draw(self.context, count)

    def framework_space(self) -> FrameworkSpace:
        from tuneoff_adapters.optuna.drawing import framework_space

        return framework_space(self.context)

    def deploy(self) -> None:
        """Start the workers, which have Optuna and what the sampler needs imported: at the return each could take a trial."""
        import_framework(self.context.spec.adapter, self.capabilities)
        experiment = self.context.spec.experiment
        storage, workers = self._storage, experiment.workers.count
        if storage.managed:
            from tuneoff_adapters.optuna.servers import start_server

            seconds = SETUP_SHARE * experiment.timeouts.deploy_seconds
            self._server = start_server(storage.kind, self.context.temporary_dir / "storage", workers, seconds)
        self._plan = self._study_plan(self._server)  # may find that the URL's $NAME is not set
        preload = (
            *_PRELOAD.get(experiment.sampler.name, ()),
            *_PRELOAD.get(self._plan.storage.kind, ()),
            *workload_at(experiment.workload.target).preload,
        )
        if self._plan.is_in_pods:
            self._state_files = [WorkerStateFile(self._plan.state_path(worker)) for worker in range(workers)]
        # a job of SLURM has the variable that holds the storage's password
        plan = replace(self._plan, storage=storage) if self._plan.is_on_hosts else self._plan
        self.start_pool(WORK, (plan,), preload)
        if storage.is_shared:
            with self.context.outside.open("a") as file:
                file.write(f"study {plan.study_name} in the storage of {self.context.spec.adapter}: optuna delete-study\n")

    @property
    def _storage(self) -> Storage:
        return storage_of(self.context.spec.options.get("storage"))

    def _study_plan(self, server: StorageServer | None = None) -> StudyPlan:
        context, storage = self.context, self._storage
        return study_plan(
            context.spec,
            context.work_dir,
            storage.at(server.url if server else storage.url) if storage.url or server else storage,
            f"tuneoff-{context.execution_id}" if storage.is_shared else None,
        )

    def setup(self) -> None:
        """Create the study and enqueue the given configurations, if any."""
        from tuneoff_adapters.optuna.study import create_study, quieten, stored_bytes
        from tuneoff_adapters.optuna.worker_recovery import WorkerRecovery

        quieten()
        flag_unused_model(self.context)
        with self._blaming_server():
            self._study = create_study(self._plan, given_values(self.context.spec))
            self._stored_bytes = stored_bytes(self._plan, self._server.data if self._server else None)
        self._asks = Tickets(self._plan.asks, self._plan.trials)
        self._recovery: WorkerRecovery = WorkerRecovery(self.context, self._plan, self._study)
        self._generations = [0] * self._pool.count
        self._server_cpu_ns = self._server.cpu_ns() if self._server else 0
        self._orders = {worker: Order(generation=0, repeats=0) for worker in range(self._pool.count)}
        self._budget_over = False

    def run_trials(self) -> None:
        with self._blaming_server():
            while self._orders:
                self._pool.run(self._give_order, self._keep_state, self._bury, self._is_over)
                lost = self._recovery.settle()
                self._repeat(0 if self._budget_over else lost)

    def collect_results(self) -> Best | None:
        from tuneoff_adapters.optuna.study import best_of

        with self._blaming_server():
            return best_of(self._study, self._plan)

    @contextlib.contextmanager
    def _blaming_server(self) -> Iterator[None]:
        """Charge an error to the storage's server where that has ended or is away: the error follows from it."""
        try:
            yield
        except Exception as error:
            if self._server is not None and (dead := self._server.dead()):
                raise InfrastructureError(dead) from error
            if (away := server_away(error)) is not None:
                raise away from error
            raise

    def collect_metrics(self) -> None:
        """Write what the storage was asked and holds, and what that cost on both sides; of pods nobody knows."""
        from tuneoff_adapters.optuna.study import stored_bytes

        if self._plan.is_in_pods:
            return
        plan, server = self._plan, self._server
        states = [WorkerStateFile(plan.state_path(worker), plan.is_on_hosts).read() for worker in range(self._pool.count)]
        with self._blaming_server():
            held = stored_bytes(self._plan, server.data if server else None)
        self.context.events.write(
            "storage_used",
            operations=sum(state.operations for state in states),
            client_cpu_ns=sum(state.cpu_ns for state in states),
            bytes=None if held is None or self._stored_bytes is None else held - self._stored_bytes,
            server_cpu_ns=server.cpu_ns() - self._server_cpu_ns if server else None,
        )

    def undeploy(self) -> None:
        super().undeploy()
        if self._server is not None:
            self._server.stop()

    def forget(self) -> bool:
        from tuneoff_adapters.optuna.study import forget_study

        if self._storage.is_shared:
            with self._blaming_server():
                forget_study(self._study_plan())
        return self._storage.is_shared

    def observe(self, worker: int, event: Event) -> None:
        """Keep the state of a worker whose folder is not here."""
        from tuneoff_adapters.optuna.worker_recovery import follow

        state = self._state_files[worker].read()
        follow(state, event, self.context.spec.experiment.objective)
        self._state_files[worker].write(state)

    def _is_over(self) -> bool:
        return self._budget_over or self._asks.taken >= self._plan.trials

    def _give_order(self, worker: int, again: Order | None) -> Order | None:
        """Send a worker its order, if there is one, and return it: it is carried out once nothing is left to ask for.

        A worker in a pod cannot count the asks of the others: each order is for one.
        """
        order = again or self._orders.pop(worker, None)
        if order is None and self._plan.is_in_pods and not self._budget_over and self._asks.take() is not None:
            order = Order(generation=self._generations[worker], repeats=1)
        if order is not None:
            order = replace(order, generation=self._generations[worker])  # it may be of another one, that is not there
            self._pool.send(worker, order)
        return order

    def _keep_state(self, order: Order, answer: Finished | Broken | TrialOutcome) -> Order | None:
        """Take in an answer, and return an order for the process that takes the place of one that leaves."""
        if isinstance(answer, TrialOutcome):  # of a pod that was ended because the run's time is used up
            self._budget_over = True
            return None
        if isinstance(answer, Broken):
            problem = f"Optuna must answer every call, but {answer.text}; see the run's log"
            raise InfrastructureError(problem) if answer.is_infrastructure else StepError(problem)
        self._budget_over |= answer.budget_over
        if answer.leaves is None:
            return None
        self._generations[answer.leaves] += 1
        return Order(generation=self._generations[answer.leaves], repeats=answer.repeats)

    def _bury(self, death: Death, order: Order | None) -> Order | None:
        """Mend what a dead worker left, and return an order for the next one in its place if there is something to ask for."""
        repeats = self._recovery.recover(death)
        if self._recovery.fruitless_deaths > MAX_FRUITLESS_DEATHS:
            raise StepError(
                f"a worker must get as far as a trial, but {self._recovery.fruitless_deaths} in a row did not: {death.cause}; "
                "see the run's log"
            )
        self._generations[death.worker] += 1
        if self._budget_over or not (repeats or self._asks.taken < self._plan.trials):
            return None
        return Order(generation=self._generations[death.worker], repeats=repeats)

    def _repeat(self, asks: int) -> None:
        """Have asks made once more that were lost with a worker; over all that are there, as evenly as possible."""
        workers = list(range(self._pool.count))
        workers_there = [worker for worker in workers if self._pool.is_there(worker)] or workers
        share, rest = divmod(asks, len(workers_there))
        shares = {worker: share + (number < rest) for number, worker in enumerate(workers_there)}
        self._orders = {
            worker: Order(generation=self._generations[worker], repeats=repeats) for worker, repeats in shares.items() if repeats
        }
