"""Workers beyond the run's own processes: agents, their connections, and the pool that a platform starts them for."""
