"""Workers in jobs of SLURM, submitted by submitit."""
