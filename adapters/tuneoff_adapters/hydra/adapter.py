"""The adapter of Hydra with its Optuna sweeper and joblib launcher. Importing it does not import Hydra."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, ClassVar

from tuneoff.adapter import Adapter, Best, Capabilities, Offer, Support, import_framework
from tuneoff.base.commands import install_command
from tuneoff.base.packages import missing_modules
from tuneoff.base.processes import MARK, command_line, end_all, with_mark
from tuneoff_adapters.optuna_samplers import SAMPLER_OPTIONS, flag_unused_model

if TYPE_CHECKING:
    from tuneoff.experiment.spec import RunSpec
    from tuneoff.experiment.translation import FrameworkSpace

INSTALL = "tuneoff[hydra]"
_WORKER = "joblib.externals.loky.backend.popen_loky_posix"  # the program of the launcher's processes
_PLUGINS = ("hydra_plugins.hydra_optuna_sweeper", "hydra_plugins.hydra_joblib_launcher")
_LISTED = "tuneoff_adapters.hydra.sweep.ListedSampler"
_TPE_OPTIONS = {name: option for name, option in SAMPLER_OPTIONS["tpe"].items() if name != "constant_liar"}


class HydraAdapter(Adapter):
    """A Hydra application in multirun mode, which is the coordinator; its jobs are trials in joblib's worker processes."""

    capabilities: ClassVar[Capabilities] = Capabilities(
        framework="Hydra",
        package="hydra-core",
        module="hydra",
        minimum_version="1.3",
        below_version="1.4",
        install=INSTALL,
        apart="1.3.8",
        samplers={
            "random": Offer(implementation="optuna.samplers.RandomSampler"),
            "grid": Offer(implementation=_LISTED, note="core's list: the sweeper's own GridSampler takes no seed"),
            "fixed": Offer(implementation=_LISTED, note="the given list, by its place: `hydra.sweeper.sampler._target_`"),
            "tpe": Offer(
                implementation="optuna.samplers.TPESampler",
                options=_TPE_OPTIONS,
                note="of Optuna 2.10: the sweeper's configuration has no constant liar, so the trials of a batch do not know of "
                "each other; the first 10 are random",
            ),
            "default": Offer(implementation="optuna.samplers.TPESampler", same_as="tpe", note="the sweeper's default"),
        },
        pruners={
            "none": Offer(implementation="none"),
            **dict.fromkeys(("median", "asha", "hyperband", "scripted"), Offer(support=Support.NOT_BY_FRAMEWORK)),
        },
        retry=Support.NOT_BY_FRAMEWORK,
        reports="none",  # a job returns its value
        changed_defaults=(
            "the Optuna sweeper and the joblib launcher (default: neither optimizes, nor runs two jobs at a time)",
            "`n_jobs` of both is workers.count (defaults: batches of 2; a process per processor)",
            "`max_failure_rate` 1 (default 0: a batch with a failed trial ends the sweep)",
            "workers are killed at the end (default: with the interpreter's teardown)",
        ),
        notes=(
            "the Optuna of its sweeper is 2.10, the newest that it allows",
            "it runs batches of workers.count trials: no trial starts before the slowest of the batch has ended",
            "a worker process that dies ends the sweep (joblib's TerminatedWorkerError), with the trials beside it",
            "it cannot end before its number of trials: once the time is over, the adapter raises in its `custom_search_space`",
        ),
    )

    @classmethod
    def refuse(cls, spec: RunSpec) -> str | None:
        if spec.environment is None and (missing := missing_modules(_PLUGINS)):
            return f"adapter {spec.adapter!r} needs {', '.join(missing)}; run: {install_command(INSTALL)}"
        return super().refuse(spec)

    def draw(self, count: int) -> Iterator[Mapping[str, object]]:
        self.deploy()
        from tuneoff_adapters.hydra.sweep import draw

        return draw(self.context, count)

    def framework_space(self) -> FrameworkSpace:
        from tuneoff_adapters.hydra.sweep import framework_space

        return framework_space(self.context)

    def deploy(self) -> None:
        """Import Hydra, its plugins and Optuna: it has no service to start, and starts its workers with the first batch."""
        import_framework(self.context.spec.adapter, self.capabilities)
        import tuneoff_adapters.hydra.sweep  # noqa: F401

    def setup(self) -> None:
        from tuneoff_adapters.hydra.sweep import Sweep

        flag_unused_model(self.context)
        self._sweep = Sweep(self.context)

    def run_trials(self) -> None:
        self._sweep.run()

    def collect_results(self) -> Best | None:
        return self._sweep.best()

    def undeploy(self) -> None:
        """Kill joblib's workers; its resource tracker, which removes their semaphores, ends with the process that has used it."""
        if "joblib" in sys.modules:
            from joblib.externals.loky import get_reusable_executor

            get_reusable_executor(reuse=True).shutdown(wait=True, kill_workers=True)
        end_all(lambda: [pid for pid in with_mark(MARK, self.context.execution_id) if _WORKER in command_line(pid, None)])
