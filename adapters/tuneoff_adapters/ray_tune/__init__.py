"""Ray Tune: trials in reused actors of a Ray instance that lives for one run, on loopback only."""
