"""Damage a bundle: its bytes, packed or not, and what is in it under a manifest that fits.

`reproduce --plan` is asked. What it accepts must unpack to the very files that were packed, unless whoever damaged them wrote
a manifest that fits; and a changed raw file must not count as verified then either.
"""

from __future__ import annotations

import gzip
import random
import shutil
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from fuzz import octets, oracle
from fuzz.damage import damage
from fuzz.folder_cases import start_nothing
from fuzz.odd_files import ODD_FILES
from fuzz.sandbox import Main, Place, call_forked
from fuzz.sources import RESULTS
from fuzz.touched import touched
from tuneoff.errors import ResultsError
from tuneoff.trust.bundle.archive import describe, unpack, write_archive
from tuneoff.trust.bundle.manifest import BundleManifest, is_safe

ARCHIVE = "b.tar.gz"
PLAN = ["reproduce", ARCHIVE, "--plan", "--limit-mb", "50"]
MOST = 50_000_000  # bytes


def ask(source: Path, place: Place, chance: random.Random, main: Main | None = None) -> list[str]:
    """Damage a bundle, ask for its plan, and return what is wrong with the answer; `main`: as for folders."""
    target = place.work / ARCHIVE
    kind = chance.choice(("bytes", "unpacked bytes", "content", "odd"))
    original = place.kept / "original"
    original.mkdir()
    manifest = unpack(source, original, MOST)
    fits = kind == "content"
    if kind == "bytes":
        target.write_bytes(_changed(source.read_bytes(), chance))
    elif kind == "unpacked bytes":
        target.write_bytes(gzip.compress(_changed(gzip.decompress(source.read_bytes()), chance), 1))
    elif kind == "content":
        _repack(original, manifest, target, chance)
    else:
        ODD_FILES[chance.choice(sorted(ODD_FILES))](target, chance)
    oracle.seen(kind)
    answer = call_forked(main or start_nothing, PLAN, place, may_start_processes=True)
    wrong = [] if answer.code != 0 or fits else _other_files(source, target, place.kept)
    if answer.code == 0 and fits and _is_verified(answer.out):
        found = touched(original / RESULTS, place.kept / "changed" / RESULTS)
        wrong = [f"verified, but changed were: {name}" for name in found if name.isprintable()]  # others are not packed
    if list(place.temporary.glob("tuneoff-bundle-*")):
        wrong.append("its temporary folder is still there")
    return oracle.failures("reproduce --plan", answer, wrong)


def _changed(content: bytes, chance: random.Random) -> bytes:
    return octets.CHANGES[chance.choice(sorted(octets.CHANGES))](content, content[::-1], chance)


def _repack(original: Path, manifest: BundleManifest, target: Path, chance: random.Random) -> None:
    """Damage the results in a bundle and write a manifest that fits."""
    folder = original.with_name("changed")
    shutil.copytree(original, folder)
    damage(folder / RESULTS, chance)
    write_bundle(target, {"": folder}, name=manifest.name, plan_id=manifest.plan_id)


def write_bundle(target: Path, folders: Mapping[str, Path], **manifest: Any) -> None:
    """Write a bundle of the files below folders, by the path that these have in it, with a manifest that fits."""
    contents = {}
    for name, folder in folders.items():
        for path in sorted(folder.rglob("*")):
            below = (PurePosixPath(name) / path.relative_to(folder)).as_posix()
            is_packed = path.is_file() and not path.is_symlink() and path.stat().st_size < MOST
            if is_packed and is_safe(below) and below.isprintable():
                contents[below] = path.read_bytes()
    files = tuple(describe(path, content) for path, content in contents.items())
    known = {"name": "b", "tuneoff": "0", "verified": True, **manifest}
    write_archive(target, BundleManifest(files=files, **known), contents)


def _other_files(source: Path, target: Path, folder: Path) -> list[str]:
    """Return what an accepted archive holds that the original does not, and the other way round."""
    found = []
    for name, path in (("one", source), ("other", target)):
        (folder / name).mkdir()
        try:
            unpack(path, folder / name, MOST)
        except ResultsError as error:
            return [f"accepted, but now it is refused: {error}"]
        files = [file for file in sorted((folder / name).rglob("*")) if file.is_file()]
        found.append({file.relative_to(folder / name).as_posix(): file.read_bytes() for file in files})
    one, other = found
    changed = [path for path in {**one, **other} if one.get(path) != other.get(path)]
    return [f"accepted, but changed were: {', '.join(changed[:5])}"] if changed else []


def _is_verified(out: str) -> bool:
    line = next((line for line in out.splitlines() if line.startswith("verification of the bundle")), "")
    return line.rstrip().endswith("same")
