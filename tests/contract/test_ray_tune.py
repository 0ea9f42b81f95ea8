import pytest

from contract.adapter_contract import AdapterContract

pytestmark = pytest.mark.slow


class TestRayTune(AdapterContract):
    adapter = "ray-tune"
    expects_listeners = True
