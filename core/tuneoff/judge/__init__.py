"""What follows from the numbers: statistics, verdicts, controls, recommendations, differences."""
