import pytest

from contract.few_runs import LIBRARY, FewRuns

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


class Test(FewRuns):
    adapter = "flaml"
    runs = LIBRARY
