"""Ray Tune: trials in reused actors of a Ray instance that lives for one run, on loopback only."""

from tuneoff_adapters.ray_tune.adapter import RayTuneAdapter

__all__ = ["RayTuneAdapter"]
