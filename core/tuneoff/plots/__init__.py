"""Plots: each answers the one question that is its title, and comes with the rows behind it. matplotlib is imported where it draws."""
