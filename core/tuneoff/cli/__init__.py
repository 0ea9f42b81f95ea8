"""The command line: one module per command, none of which imports more than it uses."""
