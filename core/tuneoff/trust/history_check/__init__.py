"""Was every configuration that a run handed out trained exactly once, or did it end as failed? From the raw events alone."""
