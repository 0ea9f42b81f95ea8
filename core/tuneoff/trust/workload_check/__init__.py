"""`tuneoff check --workload`: whether a training repeats, restores, keeps to its threads and leaves nothing behind."""
