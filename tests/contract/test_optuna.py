import pytest

from contract.few_runs import FRAMEWORK, Framework

pytestmark = [pytest.mark.slow(first=True), pytest.mark.timeout(900)]


class Test(Framework):
    adapter = "optuna"
    runs = FRAMEWORK - {"careless"}  # whose workers are those of `serial`
