"""Data of the workload: where it comes from, how it is checked, cached, split and normalised."""
