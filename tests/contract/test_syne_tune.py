import pytest

from contract.adapter_contract import AdapterContract

pytestmark = pytest.mark.slow


class TestSyneTune(AdapterContract):
    adapter = "syne-tune"
    late_epochs = 2  # the tuner polls: a trial trains on until its decision is read
