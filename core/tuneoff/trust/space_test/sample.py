"""What one adapter drew: configurations by seed, and how they were obtained."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

Configurations = Sequence[Mapping[str, Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """The draws of one adapter, before any judgement.

    `source`: "sampler", from `Adapter.draw`; "runs", received by the trials of real runs, which are fewer; `note` says why.
    `again`: the first draws of the first seed once more, from a fresh process; None where that was not done (`runs`).
    `outside`: the error with which core's or the adapter's own translation refused a value; `failure`: why there are no draws.
    `changed`: trials that got another configuration than was handed over for them (`runs`).
    `mapping`: what is wrong with the translation by dimension; None where it could not be tested, `mapping_text` says why.
    """

    source: Literal["sampler", "runs"] = "sampler"
    note: str = ""
    by_seed: Mapping[int, Configurations]
    again: Configurations | None = None
    outside: str | None = None
    failure: str | None = None
    changed: int = 0
    mapping: Mapping[str, Sequence[str]] | None = None
    mapping_text: str = ""

    @property
    def configurations(self) -> list[Mapping[str, Any]]:
        return [configuration for drawn in self.by_seed.values() for configuration in drawn]

    def with_mapping(self, problems: Mapping[str, Sequence[str]] | None, text: str) -> Sample:
        """Return the sample with how the test of the mapping went."""
        return replace(self, mapping=problems, mapping_text=text)
