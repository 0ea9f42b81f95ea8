"""What the driver and its actors call what they hand over; an actor imports nothing else of the driver's."""

TASK = "__tuneoff__"  # the key of the trainable's config that holds what `train` needs
OBJECTIVE, EPOCH = "objective", "epoch"  # what a trial reports; fixed, so that no metric's name meets one of Ray's
