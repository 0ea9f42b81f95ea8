"""`tuneoff check --space`: whether every adapter draws from core's search space, tested on what its own sampler gives."""
