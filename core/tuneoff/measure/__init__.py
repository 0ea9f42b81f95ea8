"""Numbers from records: metrics, energy, the meters that read power."""
