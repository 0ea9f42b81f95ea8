import pytest

from contract.adapter_contract import AdapterContract

pytestmark = pytest.mark.slow


class TestSyneTune(AdapterContract):
    adapter = "syne-tune"
    late_epochs = 1  # between the tuner's decision and its SIGKILL
