"""The answers that a results folder gives: groups of runs by adapter, verdicts per pair and question, and what they rest on."""
