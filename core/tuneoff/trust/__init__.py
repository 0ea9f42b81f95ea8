"""Why believe it: conformance, space tests, faults, verification, bundles."""
