import pytest

from contract.few_runs import FRAMEWORK, FewRuns

pytest.importorskip("neps", reason="NePS allows no pandas from 3 on, so it has an environment of its own: neps==0.17.0")
pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


class Test(FewRuns):
    adapter = "neps"
    runs = FRAMEWORK
