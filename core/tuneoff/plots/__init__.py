"""Plots: each answers the question that is its title, and comes with the rows behind it. matplotlib is imported where it draws."""
