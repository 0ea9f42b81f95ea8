"""What a run is charged: the grid's carbon intensity and prices. Declared before a matrix, stored with every run."""
