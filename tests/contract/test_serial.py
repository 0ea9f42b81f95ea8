import pytest

from contract.few_runs import FewRuns

pytestmark = [pytest.mark.slow(first=True), pytest.mark.timeout(900)]


class Test(FewRuns):
    adapter = "serial"
    only = ()  # all
