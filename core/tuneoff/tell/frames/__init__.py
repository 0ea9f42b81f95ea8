"""A results folder as data frames: `tuneoff.load(DIR)`."""
