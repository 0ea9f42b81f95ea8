import pytest

from tuneoff.testing import adapter_contract

pytestmark = [pytest.mark.slow(first=True), pytest.mark.timeout(900)]

Test = adapter_contract("serial")
