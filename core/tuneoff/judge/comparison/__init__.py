"""Two sets of runs of the same experiments: their environments, their bits, and what changed beyond noise."""
