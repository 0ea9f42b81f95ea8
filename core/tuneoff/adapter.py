"""The contract of an adapter: it drives one framework through the lifecycle; core owns the order and the clock."""

from __future__ import annotations

import json
import os
import sys
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from tuneoff.base.capabilities import Capabilities, Offer, Option, Support, import_framework
from tuneoff.base.files import replacing
from tuneoff.base.findings import Finding
from tuneoff.base.layout import BEST_CONFIGURATION, TEST_RESULT
from tuneoff.base.process_limits import as_parent
from tuneoff.base.processes import run_to_end
from tuneoff.errors import StepError

__all__ = ["Adapter", "Best", "Capabilities", "Finding", "Offer", "Option", "Support", "import_framework", "score_best"]

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tuneoff.experiment.spec import RunSpec
    from tuneoff.experiment.translation import FrameworkSpace
    from tuneoff.record.run_context import RunContext
    from tuneoff.workload import Configuration


@dataclass(frozen=True, slots=True, kw_only=True)
class Best:
    """The framework's own answer: which trial is best, and the value it gives for it (None: it gives none)."""

    trial_id: str
    configuration: Configuration
    value: float | None


class Adapter(ABC):
    """Drives one framework. Importing its module does not import the framework: `plan` needs its capabilities.

    An instance lives in the run's own coordinator process. `undeploy` may be called on an instance that did nothing else:
    after a killed coordinator, a fresh process with the same context calls it, so whatever must be removed is remembered
    on disk (`context.remember`) before it is created. Temporary files belong under `context.temporary_dir`.
    """

    capabilities: ClassVar[Capabilities]

    local_options: ClassVar[frozenset[str]] = frozenset()
    """Names of adapter options that do not define the run (an address, how long it is waited for): with other values it is the
    same run, by its id and in every table."""

    foreign_options: ClassVar[frozenset[str]] = frozenset()
    """Names of adapter options that a bundle of somebody else may set, to numbers and words (no path, address or command): none
    that names a file, host, cluster, image or account. Its runs are run on platform `local` alone."""

    lost_codes: ClassVar[frozenset[int]] = frozenset()
    """Exit codes with which the framework ends the coordinator when a part of it was lost: charged to the infrastructure, as a
    signal is, so that `--resume` repeats the run. With any other code the adapter ended its process itself."""

    doctor: ClassVar[str | None] = None
    """`module:function` of what `tuneoff doctor` is to check of the framework beside its version, by `function(image)`: it yields
    `Finding`s. `image`: of trials, as `--image` names it, or None."""

    logs: ClassVar[tuple[str, ...]] = ()
    """Patterns of files below `context.work_dir` or `context.temporary_dir` that what trials print goes to, where it does not go
    to the coordinator's output. Core keeps the first and the last part of each, also while it is written; nobody may read it
    from its beginning by then."""

    undeploy_seconds: float = 300.0
    """How long `undeploy` may take until its process is killed; core sets it before the call: less after an interruption."""

    def __init__(self, context: RunContext) -> None:
        self.context = context

    @classmethod
    def platforms(cls) -> tuple[str, ...]:
        """Return the names of the platforms that it runs on, the default first."""
        return cls.capabilities.platforms

    @classmethod
    def capabilities_on(cls, platform: str) -> Capabilities:
        """Return the capabilities on a platform."""
        return cls.capabilities

    @classmethod
    def local_options_on(cls, platform: str) -> frozenset[str]:
        """Return the names of options on a platform that do not define the run."""
        return cls.local_options

    @classmethod
    def refuse(cls, spec: RunSpec) -> str | None:
        """Return why this run cannot be served exactly (beyond the capabilities), or None. Called by `plan`; imports nothing.

        This default accepts no adapter options, and of the sampler what its offer declares. An override that has adapter
        options checks `spec.options` itself and calls `sampler_refusal`.
        """
        from tuneoff.experiment.strategies import sampler_refusal

        if spec.options:
            return f"adapter {spec.adapter!r} has no options, but got {', '.join(sorted(spec.options))}; remove them"
        return sampler_refusal(spec, cls.capabilities)

    @classmethod
    def requirements(cls, spec: RunSpec) -> tuple[str, ...]:
        """Return what pip installs for a run's adapter options beside the framework, for an environment of its own."""
        return ()

    @classmethod
    def placement(cls, spec: RunSpec) -> str | None:
        """Return one line on what a run starts on which other hosts, for `plan`, or None: everything is here. Starts nothing."""
        return None

    @classmethod
    def strategies(cls, spec: RunSpec) -> dict[str, str]:
        """Return the framework's classes that serve `sampler` and `pruner`, for the record."""
        capabilities = cls.capabilities_on(spec.platform)
        samplers, pruners = capabilities.samplers, capabilities.pruners
        return {
            "sampler": samplers[spec.experiment.sampler.name].implementation,
            "pruner": pruners[spec.experiment.pruner.name].implementation,
        }

    @classmethod
    def changed_defaults(cls, spec: RunSpec) -> tuple[str, ...]:
        """Return what a run's adapter sets otherwise than a user of the framework finds it, for the record and below figures."""
        return cls.capabilities_on(spec.platform).changed_defaults

    def draw(self, count: int) -> Iterator[Mapping[str, object]]:
        """Yield `count` configurations from the framework's own sampler, in core's form, and run none of them.

        For `tuneoff check --space`: the same sampler, space and translation as in a run of this context's spec, whose sampler
        is `random`. Called instead of the steps, in a fresh process that is ended afterwards; it may write below
        `context.work_dir` and `context.temporary_dir`, and starts nothing that would outlive it.

        Raises:
            NotImplementedError: not without running trials (this default; the text may say why).
        """
        raise NotImplementedError

    def framework_space(self) -> FrameworkSpace:
        """Return the search space as the framework has it, for `tuneoff check --space`; called as `draw` is, and after it.

        Raises:
            NotImplementedError: the adapter cannot tell (this default).
        """
        raise NotImplementedError

    @abstractmethod
    def deploy(self) -> None:
        """Start the framework: at its return it could take any HPO job."""

    @abstractmethod
    def setup(self) -> None:
        """Configure search space, sampler, pruner and budget; the step ends when the first trial is submitted."""

    @abstractmethod
    def run_trials(self) -> None:
        """Run all trials; return when the last one has ended, in whatever state.

        Announce each trial by `context.submitted(...)` when the framework hands its configuration over for execution.
        """

    @abstractmethod
    def collect_results(self) -> Best | None:
        """Return the framework's own best trial, or None when no trial completed."""

    def test(self, best: Best) -> None:
        """Score the best trial's own checkpoint on the test split, in a fresh process; the same for every adapter."""
        score_best(self.context, best)

    def collect_metrics(self) -> None:  # noqa: B027
        """Gather what was measured outside the framework."""

    @abstractmethod
    def undeploy(self) -> None:
        """Remove all that `deploy` and later steps started; idempotent."""


def score_best(context: RunContext, best: Best) -> None:
    """Score the checkpoint of the best trial and log it as `tested`; a workload without a test gives no scores.

    Raises:
        StepError: the process failed or took longer than `timeouts.test_seconds`.
    """
    from tuneoff.workload import workload_at

    configuration_file = context.run_dir / BEST_CONFIGURATION
    with replacing(configuration_file) as file:
        file.write(json.dumps(dict(best.configuration)).encode())
    if not workload_at(context.spec.experiment.workload.target).has_test:
        context.events.write("tested", trial=best.trial_id, scores={})
        return
    output = context.run_dir / TEST_RESULT
    command = [sys.executable, "-m", "tuneoff.run.trial", "--test", str(context.trial_context.path), best.trial_id]
    command += [str(configuration_file), str(output)]
    limit = context.spec.experiment.timeouts.test_seconds
    try:
        done = run_to_end(command, limit, environment={**os.environ, **as_parent()})
    except TimeoutError as error:
        raise StepError(f"the test must end within {limit:g} s, but did not; raise timeouts.test_seconds") from error
    sys.stderr.write(done.output + done.errors)  # of the coordinator, and so its log
    if done.code != 0 or not output.exists():
        lines = done.errors.strip().splitlines() or ["no output"]
        raise StepError(f"the best trial {best.trial_id} could not be tested: {lines[-1]}")
    result = json.loads(output.read_text())
    odd = {"non_finite": result["non_finite"]} if result["non_finite"] else {}
    context.events.write(
        "tested",
        trial=best.trial_id,
        scores=result["scores"],
        checkpoint_sha256=result["checkpoint_sha256"],
        device=result["device"],
        cpu_ns=result["cpu_ns"],
        **odd,
    )
