import pytest

from contract.adapter_contract import AdapterContract

pytestmark = pytest.mark.slow


class TestEmulatedKatib(AdapterContract):
    adapter = "katib"
    platform = "emulated"
    has_retries = False
    memory_limiters = ("container",)
    expects_listeners = True  # the emulated API server
