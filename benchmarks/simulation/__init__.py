"""Simulations of the statistics: how often their intervals hold, and how often their verdicts are wrong or find what is there."""
