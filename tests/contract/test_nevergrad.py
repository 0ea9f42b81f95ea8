import pytest

from contract.few_runs import FEW_RUNS
from tuneoff.testing import adapter_contract

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

Test = adapter_contract("nevergrad", only=FEW_RUNS)
