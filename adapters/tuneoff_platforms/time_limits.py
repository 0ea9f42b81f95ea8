"""Shares of a step's own limit for what it waits for beyond this machine: what hangs is to be named before the step ends."""

REMOVAL_SHARE = 0.8  # of un-deploy's
SETUP_SHARE = 0.75  # of deploy's, or of setup's
