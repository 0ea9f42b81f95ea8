"""What was sampled while a run ran: power and resource use of the host, one file per run, written by one sampler per host."""
