"""Shared set-up of all tests."""

import pytest

pytest.register_assert_rewrite("contract.adapter_contract")
