"""NePS: long-lived worker processes that each run `neps.run` on one folder."""
