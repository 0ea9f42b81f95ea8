"""The plants: small defects of the product, each of which the seam and the contracts must catch."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
FOLDER = Path(__file__).with_name("plants")


@dataclass(frozen=True, slots=True, kw_only=True)
class Plant:
    """An edit in one place: `old`, which stands in the file exactly once, becomes `new`."""

    name: str  # the list's name and its number there
    file: str
    old: str
    new: str
    breaks: str
    replaces: str = ""  # a test file that caught it, and is gone

    def planted(self, root: Path) -> str:
        """Return the text of the file with the defect.

        Raises:
            ValueError: the old text is not there exactly once.
        """
        text = (root / self.file).read_text()
        if (count := text.count(self.old)) != 1:
            raise ValueError(f"{self.name}: {self.file} has {self.old!r} {count} times; it must have it once")
        return text.replace(self.old, self.new)


def plants() -> list[Plant]:
    """Return all plants, in the order of their lists."""
    return [
        Plant(name=f"{path.stem}-{number}", **row)
        for path in sorted(FOLDER.glob("*.toml"))
        for number, row in enumerate(tomllib.loads(path.read_text())["plant"], 1)
    ]
