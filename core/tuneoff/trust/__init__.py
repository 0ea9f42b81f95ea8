"""Why believe it: conformance, space tests, verification, bundles."""
