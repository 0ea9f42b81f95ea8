import pytest

from contract.adapter_contract import AdapterContract

pytestmark = pytest.mark.slow


class TestOptuna(AdapterContract):
    adapter = "optuna"
