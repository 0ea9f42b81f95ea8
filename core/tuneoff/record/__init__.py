"""What happened: event logs, samples, run records, the results folder."""
