"""What changed between two results folders of the same experiments, beyond noise."""
