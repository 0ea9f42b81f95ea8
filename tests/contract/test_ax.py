import pytest

from contract.few_runs import LIBRARY, FewRuns

pytest.importorskip("ax", reason="Ax is not in the development environment, for its size; run: pip install '.[ax]'")
pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


class Test(FewRuns):
    adapter = "ax"
    runs = LIBRARY
