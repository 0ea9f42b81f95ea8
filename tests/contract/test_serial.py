import pytest

from tuneoff.testing import adapter_contract

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

Test = adapter_contract("serial")
