"""For the tests of a plugin: the conformance kit as a test class of pytest."""

from tuneoff.trust.check.contract import AdapterContract, adapter_contract

__all__ = ["AdapterContract", "adapter_contract"]
