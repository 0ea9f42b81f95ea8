"""The adapter: it makes the study, gives orders to the workers, and cleans up after those that die."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from tuneoff.adapter import Adapter, Best
from tuneoff.capabilities import Capabilities, import_framework
from tuneoff.errors import InfrastructureError, StepError
from tuneoff.run.trial.locks import Tickets
from tuneoff.run.trial.pool import Death, WorkerPool
from tuneoff.workload import workload_at
from tuneoff_adapters.optuna.offers import CAPABILITIES
from tuneoff_adapters.optuna.plan import Broken, Finished, Order, study_plan
from tuneoff_adapters.optuna_samplers import flag_unused_model, refuse_untold

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tuneoff.experiment.spec import RunSpec
    from tuneoff.experiment.translation import FrameworkSpace
    from tuneoff_adapters.optuna.mending import Mender

_PRELOAD = {  # what Optuna would import at the first use of a sampler, inside an ask
    "gp": ("torch", "scipy.optimize", "scipy.stats"),
    "cmaes": ("cmaes",),
    "sobol": ("scipy.stats.qmc",),
}
MAX_FRUITLESS_DEATHS = 10  # workers in a row that died before any of them had a trial


class OptunaAdapter(Adapter):
    """Optuna by ask and tell in `workers.count` long-lived processes over one journal file."""

    capabilities: ClassVar[Capabilities] = CAPABILITIES
    fault_tools: ClassVar[str | None] = "tuneoff_adapters.optuna.breaking:TOOLS"

    @classmethod
    def refuse_continue(cls, spec: RunSpec) -> str | None:
        return refuse_untold(spec) or super().refuse_continue(spec)

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
        self._plan = study_plan(self.context.spec, self.context.work_dir, self.context.history)
        self._pool = WorkerPool(
            self.context.trial_context,
            experiment.workers.count,
            "tuneoff_adapters.optuna.worker:work",
            (self._plan,),
            (*_PRELOAD.get(experiment.sampler.name, ()), *workload_at(experiment.workload.target).preload),
        )
        self._pool.start()

    def setup(self) -> None:
        """Create the study and enqueue the given configurations, if any."""
        from tuneoff_adapters.optuna.mending import Mender
        from tuneoff_adapters.optuna.study import create_study, quieten

        quieten()
        flag_unused_model(self.context)
        self._study = create_study(self._plan, self.context.history)
        self._asks = Tickets(self._plan.asks, self._plan.trials)
        self._mender: Mender = Mender(self.context, self._plan, self._study)
        self._generations = [0] * self._pool.count
        self._orders = {worker: Order(generation=0, repeats=0) for worker in range(self._pool.count)}
        self._budget_over = False

    def run_trials(self) -> None:
        while self._orders:
            self._pool.run(self._give_order, self._note, self._bury)
            lost = self._mender.settle()
            self._repeat(0 if self._budget_over else lost)

    def collect_results(self) -> Best | None:
        from tuneoff_adapters.optuna.study import best_of

        return best_of(self._study, self._plan)

    def undeploy(self) -> None:
        pool = getattr(self, "_pool", None)  # a fresh process has none: the killed coordinator's workers died with it
        if pool is not None:
            pool.close()

    def _give_order(self, worker: int, again: Order | None) -> Order | None:
        """Send a worker its order, if there is one, and return it: it is carried out once nothing is left to ask for."""
        order = again or self._orders.pop(worker, None)
        if order is not None:
            self._pool.send(worker, order)
        return order

    def _note(self, order: Order, answer: Finished | Broken) -> None:
        if isinstance(answer, Broken):
            problem = f"Optuna must answer every call, but {answer.text}; see the run's log"
            raise InfrastructureError(problem) if answer.is_infrastructure else StepError(problem)
        self._budget_over |= answer.budget_over

    def _bury(self, death: Death, order: Order | None) -> Order | None:
        """Mend what a dead worker left, and return an order for the next one in its place if there is something to ask for."""
        repeats = self._mender.mend(death)
        if self._mender.fruitless_deaths > MAX_FRUITLESS_DEATHS:
            raise StepError(
                f"a worker must get as far as a trial, but {self._mender.fruitless_deaths} in a row did not: {death.cause}; "
                "see the run's log"
            )
        self._generations[death.worker] += 1
        if self._budget_over or not (repeats or self._asks.taken < self._plan.trials):
            return None
        return Order(generation=self._generations[death.worker], repeats=repeats)

    def _repeat(self, asks: int) -> None:
        """Have asks made once more that were lost with a worker; over all places, as evenly as possible."""
        share, rest = divmod(asks, self._pool.count)
        for worker, generation in enumerate(self._generations):
            if repeats := share + (worker < rest):
                self._orders[worker] = Order(generation=generation, repeats=repeats)
