"""An adapter whose un-deploy has something to say, so that it writes to its log, and reads a file of its framework's folder."""

from __future__ import annotations

from tuneoff_adapters.ray_tune.adapter import RayTuneAdapter


class Noisy(RayTuneAdapter):
    """Un-deploys as Ray Tune's adapter does."""

    def undeploy(self) -> None:
        print("un-deploying", flush=True)
        super().undeploy()
