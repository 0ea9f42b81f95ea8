"""What a results folder is doing now: its state, the display on a terminal, and the page in a browser. Nothing is written."""
