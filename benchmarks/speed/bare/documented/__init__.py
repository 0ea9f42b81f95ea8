"""Scripts as the frameworks' documents show them, in two processes, with nothing tuned; each trains the same digits.

`python -m benchmarks.speed.bare.documented.NAME TRAININGS FOLDER [changed]` prints {"job_seconds": ..., "values": ...} last: from
before the framework's import to the end of what it started, and each training's best validation accuracy. With `changed` it has
what the adapter changes against this, as its `changed_defaults` name it.
"""
