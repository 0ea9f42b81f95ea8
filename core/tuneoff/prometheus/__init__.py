"""Prometheus: a power meter that asks a server for a run's window, and live metrics of a matrix for a server to scrape."""
