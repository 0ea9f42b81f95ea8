"""The emulated node: Jobs become pods, pods become processes, and the collector reads their metrics."""
