"""The objects of the emulated cluster: kept, journaled, deleted, watched."""
