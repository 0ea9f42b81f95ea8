"""The comparison matrix: from a file to planned runs, in the order that is fair."""
