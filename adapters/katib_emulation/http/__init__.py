"""The REST surface of the emulated cluster, on loopback."""
