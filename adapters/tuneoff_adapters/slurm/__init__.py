"""Trials in jobs of SLURM: each worker of a pool is a job, submitted by submitit, in which an agent looks after it."""
