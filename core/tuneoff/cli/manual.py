"""The pages of docs/, which travel with the package, and the rows of their tables."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from typing import NamedTuple

from tuneoff.base.packages import travelling_folder

FOLDER, INDEX = "docs", "README.md"
_CELL = re.compile(r"\s*(?<!\\)\|\s*")


class ManualRow(NamedTuple):
    """A row of a table. `section`: the heading above it, or the bold word that a paragraph above it begins with."""

    section: str
    cells: tuple[str, ...]

    @property
    def names(self) -> list[str]:
        """What its first cell names, in backticks."""
        return re.findall(r"`([^`]+)`", self.cells[0])


def page_text(name: str) -> str:
    """Return a page, by the name of its file."""
    return (travelling_folder(FOLDER) / name).read_text(encoding="utf-8")


def rows(name: str) -> Iterator[ManualRow]:
    """Yield the rows of a page's tables; links and bold type are plain text."""
    section = ""
    for line, below in itertools.pairwise([*page_text(name).splitlines(), ""]):
        if heading := re.match(r"#+ (.+)|\*\*(\w+)\*\*:", line):
            section = heading[1] or heading[2]
        elif line.startswith("|") and not line.startswith("|---") and not below.startswith("|---"):  # nor its head
            yield ManualRow(section, tuple(map(_plain, _CELL.split(line.strip())[1:-1])))


def pages() -> dict[str, str]:
    """Return what each page answers, by its name as texts have it (`docs/verdicts.md`), as the index says."""
    by_page: dict[str, list[str]] = {}
    for line in page_text(INDEX).splitlines():
        cells = _CELL.split(line)
        for name in dict.fromkeys(re.findall(r"\]\((\w+\.md)", cells[2]) if len(cells) > 3 else ()):
            by_page.setdefault(f"{FOLDER}/{name}", []).append(_plain(cells[3]))
    return {name: " ".join(questions) for name, questions in by_page.items()}


def _plain(cell: str) -> str:
    return re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", cell).replace("**", "").replace("\\|", "|")
