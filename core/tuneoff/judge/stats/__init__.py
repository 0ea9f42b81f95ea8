"""Statistics on plain numbers: estimates, intervals, tests, verdicts. They know nothing of runs; what needs scipy imports it."""
