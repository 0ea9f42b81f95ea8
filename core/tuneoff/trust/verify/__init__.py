"""Recompute every stored number of a results folder from its raw events, samples and prices, and name what differs."""
