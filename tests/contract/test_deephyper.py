import pytest

from contract.few_runs import FewRuns

pytest.importorskip("deephyper", reason="DeepHyper is not in the development environment; run: pip install '.[deephyper]'")
pytestmark = [pytest.mark.slow(first=True), pytest.mark.timeout(900)]


class Test(FewRuns):
    adapter = "deephyper"
    hears_ends = True
