"""tuneoff's own speed, as ratios against bare code on the same machine: `python -m benchmarks.speed`."""
