"""Controls of a comparison: same configurations, same algorithm, algorithm and runtime effects, and the noise floor."""
