"""A power meter that asks a Prometheus server for a run's window."""
