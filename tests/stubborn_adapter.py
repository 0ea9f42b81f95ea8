"""An adapter that does not react to SIGTERM, and leaves a process behind."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from typing import ClassVar

from tuneoff.adapter import Adapter, Best
from tuneoff.capabilities import Capabilities, Offer


class Stubborn(Adapter):
    """Ignores SIGTERM for a minute in its trial step."""

    capabilities: ClassVar[Capabilities] = Capabilities(
        framework="none", samplers={"random": Offer(implementation="none")}, pruners={"none": Offer(implementation="none")}
    )

    def deploy(self) -> None:
        subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])

    def setup(self) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)

    def run_trials(self) -> None:
        time.sleep(60)

    def collect_results(self) -> Best | None:
        return None

    def undeploy(self) -> None:
        (self.context.run_dir / "undeployed").touch()


class Slow(Stubborn):
    """Ends by SIGTERM."""

    def setup(self) -> None:
        pass
