"""Defects in `undeploy`."""

from __future__ import annotations

import time

from tuneoff_adapters.serial import SerialAdapter


class NeedsItsSetup(SerialAdapter):
    """Closes in `undeploy` what `setup` made, whether that was called or not."""

    def undeploy(self) -> None:
        super().undeploy()
        if hasattr(self, "_pool"):
            self._budget.close()
            del self._pool


class RemovesTwice(SerialAdapter):
    """Removes a file in `undeploy`, and again when it is gone."""

    def deploy(self) -> None:
        super().deploy()
        self._file = self.context.work_dir / "deployed"
        self._file.touch()

    def undeploy(self) -> None:
        super().undeploy()
        if hasattr(self, "_file"):
            self._file.unlink()


class NeedsItsInstance(SerialAdapter):
    """Un-deploys what its own `deploy` made, and breaks where another process did that."""

    def undeploy(self) -> None:
        self._pool.close()


class HangsInUndeploy(SerialAdapter):
    """Never comes to the end of `undeploy` once the run was interrupted."""

    def undeploy(self) -> None:
        super().undeploy()
        is_interrupted = self.undeploy_seconds < self.context.spec.experiment.timeouts.undeploy_seconds
        if is_interrupted and hasattr(self, "_pool"):
            time.sleep(3600)
