"""Trials in jobs of SLURM: each worker of a pool is a job, submitted by submitit, in which an agent looks after it."""

SLURM = "slurm"  # the platform
LOCAL_OPTIONS = frozenset({"setup", "host_python", "submit_host", "lost_seconds", "pending_seconds"})  # the way, and the patience
