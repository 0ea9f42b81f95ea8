"""The conformance kit: a handful of real runs of one adapter, and checks that only read what they left."""
