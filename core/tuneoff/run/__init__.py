"""Make it happen: execute a matrix, supervise each run, drive its lifecycle and its trials."""
