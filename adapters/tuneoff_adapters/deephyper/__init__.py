"""DeepHyper: its search in the coordinator, its evaluator over a pool of one process for each worker."""

STOPS_AT_GOAL = "deephyper.evaluator.callback.SearchEarlyStopping with a threshold"
