"""The ground: clocks, files, processes, text. It knows nothing of experiments."""
