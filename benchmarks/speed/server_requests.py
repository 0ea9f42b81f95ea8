"""What an emulated API server was asked, from its access log: polling apart from watches and followed logs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal
from urllib.parse import parse_qs, urlsplit

Sort = Literal["watch", "log", "poll"]


@dataclass(frozen=True, slots=True)
class LoggedRequest:
    """One request: when its answer began (Unix time, s), its verb and its path with the query."""

    t: float
    verb: str
    path: str

    @property
    def sort(self) -> Sort:
        """A watch and a followed log are one request each for many pieces of news; whatever else is asked counts as polling."""
        query = parse_qs(urlsplit(self.path).query)
        if query.get("watch") == ["true"]:
            return "watch"
        return "log" if query.get("follow") == ["true"] else "poll"


def read_access_log(path: Path) -> list[LoggedRequest]:
    """Return the requests of an access log; a line that is being written is left out."""
    lines = [line.split("\t") for line in path.read_text().split("\n")[:-1]]
    return [LoggedRequest(float(moment), verb, url) for moment, verb, url, *_ in lines]


def most_within(moments: Sequence[float], seconds: float) -> int:
    """Return how many moments lie within the fullest span of `seconds` (both ends count)."""
    ordered = sorted(moments)
    most, first = 0, 0
    for index, moment in enumerate(ordered):
        while moment - ordered[first] > seconds:
            first += 1
        most = max(most, index - first + 1)
    return most
