"""`tuneoff faults`: what becomes of a run when something goes wrong, by a framework's own defaults and through its adapter."""
