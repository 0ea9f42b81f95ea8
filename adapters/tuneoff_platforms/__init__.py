"""Platforms: where the workers of core's pool are. `remote` has what each that starts them by a command or a queue is made of."""
