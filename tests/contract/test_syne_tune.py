import pytest

from contract.few_runs import FRAMEWORK, Framework

pytestmark = [pytest.mark.slow(first=True), pytest.mark.timeout(900)]


class Test(Framework):
    adapter = "syne-tune"
    runs = FRAMEWORK - {"default-sampler"}  # which is `random`; the runs of given configurations have a model
