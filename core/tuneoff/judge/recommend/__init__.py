"""From answers to a choice: which framework for these constraints, and what changed between two results folders."""
