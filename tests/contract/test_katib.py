import pytest

from contract.few_runs import Framework

pytestmark = [pytest.mark.slow(first=True), pytest.mark.timeout(900)]


class Test(Framework):
    adapter = "katib"
    platform = "emulated"
