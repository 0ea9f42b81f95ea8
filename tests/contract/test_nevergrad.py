import pytest

from contract.few_runs import ASK_TELL, FewRuns

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


class Test(FewRuns):
    adapter = "nevergrad"
    hears_ends = True
    only = ASK_TELL
