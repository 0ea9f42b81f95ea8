"""The conformance kit as a test class for pytest, which nothing else here imports.

In the tests of a package, one line::

    TestMyFramework = adapter_contract("my-framework")

Only the runs are made that the selected tests read: `pytest -k best` makes few.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import pytest

from tuneoff.base.findings import chosen
from tuneoff.trust.check.checks import CHECKS
from tuneoff.trust.check.evidence import AdapterCheck, AdapterEvidence
from tuneoff.trust.check.make import ONE_AT_A_TIME, make_evidence, subject_of, tried_again


class AdapterContract:
    """Every check is a test; the runs that they read are made once. Inherit it, or use `adapter_contract`."""

    adapter: ClassVar[str]  # its entry point's name, or "module:Class"
    platform: ClassVar[str | None] = None  # None: the adapter's first one
    options: ClassVar[Mapping[str, Any]] = {}  # of the adapter
    only: ClassVar[tuple[str, ...]] = ()  # ids or families; (): all. Only what these read is run

    @classmethod
    def checks(cls) -> Sequence[AdapterCheck]:
        """Return the checks that are tests; each says which runs it reads."""
        return chosen(CHECKS, cls.only)

    @pytest.fixture(scope="class")
    @classmethod
    def evidence(cls, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> AdapterEvidence:
        """Make the runs that the selected tests read."""
        subject = subject_of(cls.adapter, cls.platform, cls.options)
        tests = [item for item in request.session.items if isinstance(item, pytest.Function) and item.cls is request.cls]
        selected = {item.callspec.params.get("check") for item in tests if hasattr(item, "callspec")}
        checks = [check for check in cls.checks() if check in selected]
        return make_evidence(subject, checks, tmp_path_factory.mktemp("check"))

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        """Let each check among `only` be a test."""
        if metafunc.function.__name__ == "test_adapter_conforms":
            metafunc.parametrize("check", self.checks(), ids=lambda check: check.id)

    def test_adapter_conforms(
        self, check: AdapterCheck, evidence: AdapterEvidence, tmp_path_factory: pytest.TempPathFactory
    ) -> None:
        """The adapter keeps one rule of the contract."""

        def again(late: Sequence[AdapterCheck]) -> AdapterEvidence:
            return make_evidence(evidence.subject, late, tmp_path_factory.mktemp("again"), at_once=ONE_AT_A_TIME)

        (finding,) = tried_again([check], evidence, again)
        if finding.is_good and finding.verdict != "passed":
            pytest.skip(finding.text)
        assert finding.verdict == "passed", (
            f"{check.id} ({check.rule}) {finding.verdict}: {finding.text}. Way out: {check.way_out}"
        )


def adapter_contract(
    adapter: str, platform: str | None = None, *, options: Mapping[str, Any] | None = None, only: tuple[str, ...] = ()
) -> type[AdapterContract]:
    """Return a test class for an adapter; assign it to a name that begins with `Test`."""
    values = {"adapter": adapter, "platform": platform, "options": dict(options or {}), "only": only}
    return type("TestAdapter", (AdapterContract,), values)
