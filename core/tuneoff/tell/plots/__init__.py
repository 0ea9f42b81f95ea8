"""Plots: each answers the question that is its title, with the rows behind it. matplotlib is imported where it draws."""
