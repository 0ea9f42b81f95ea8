"""An adapter with something outside this machine: a folder of the test stands for the cluster."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import ClassVar

from tuneoff.adapter import Adapter, Best, Capabilities, Offer
from tuneoff.errors import StepError

TEXT = "a thing in the test's cluster; run: rm"


class Outside(Adapter):
    """Makes a file named after the execution in folder `cluster` (an option), and removes it unless a file `away` is there."""

    capabilities: ClassVar[Capabilities] = Capabilities(
        framework="none", samplers={"random": Offer(implementation="none")}, pruners={"none": Offer(implementation="none")}
    )

    @property
    def thing(self) -> Path:
        return Path(self.context.spec.options["cluster"]) / self.context.execution_id

    def deploy(self) -> None:
        self.context.outside.write_text(f"{TEXT} {self.thing.name}\n")
        self.thing.touch()

    def setup(self) -> None:
        if self.context.spec.options.get("fails"):
            raise StepError("the cluster went away")

    def run_trials(self) -> None:
        raise NotImplementedError

    def collect_results(self) -> Best | None:
        raise NotImplementedError

    def undeploy(self) -> None:
        if (self.thing.parent / "away").exists():
            raise StepError("un-deploy failed: the cluster is away")
        Path(f"{self.thing.parent}.temporary").write_text(tempfile.gettempdir())
        self.thing.unlink(missing_ok=True)
        self.context.outside.unlink(missing_ok=True)
