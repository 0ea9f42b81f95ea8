"""Adapters that do not react to SIGTERM, and leave a process behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from typing import ClassVar

from daemons import start_daemon
from tuneoff.adapter import Adapter, Best, Capabilities, Offer


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


class SlowStart(Slow):
    """Takes a minute to start."""

    def deploy(self) -> None:
        time.sleep(60)


class Daemonic(Slow):
    """Leaves a daemon; its deploy takes longer than the grain in which the start of a process is known."""

    def deploy(self) -> None:
        time.sleep(0.05)
        start_daemon(self.context.run_dir / "daemon")
        time.sleep(0.05)

    def run_trials(self) -> None:
        pass


class DaemonicAndSlow(Daemonic):
    """Leaves a daemon, and trains for a minute."""

    def run_trials(self) -> None:
        time.sleep(60)


class Forks(Slow):
    """Leaves a fork of its own process; its steps are longer than the grain in which the start of a process is known."""

    def deploy(self) -> None:
        time.sleep(0.05)

    def setup(self) -> None:
        if os.fork() == 0:
            os.setsid()
            time.sleep(600)
        time.sleep(0.05)

    def run_trials(self) -> None:
        time.sleep(0.05)


class Idle(Slow):
    """Runs nothing."""

    def run_trials(self) -> None:
        pass


class LeavesMemory(Slow):
    """Leaves shared memory that it used."""

    def deploy(self) -> None:
        pass

    def run_trials(self) -> None:
        with open(f"/dev/shm/left-{self.context.execution_id[-6:]}", "w"):
            time.sleep(1)


class Quits0(Slow):
    """Ends its process in the trial step, with the code in its name."""

    def run_trials(self) -> None:
        os._exit(int(type(self).__name__[-1]))


class Quits3(Quits0):
    pass


class Quits5(Quits0):
    pass


class Lost(Slow):
    """Its framework ends the process where it lost a part."""

    lost_codes: ClassVar[frozenset[int]] = frozenset({7})

    def run_trials(self) -> None:
        os._exit(7)
