"""Live metrics of a matrix, for a Prometheus server to scrape."""
