"""`tuneoff bundle`: pack a results folder into one archive that others can check and reproduce."""

from __future__ import annotations

import argparse
from pathlib import Path

from tuneoff.base.format import counted
from tuneoff.base.output import note, printable, write, write_json
from tuneoff.cli.command import whole_number
from tuneoff.cli.folders import add_results, newest_folder

NAME = "bundle"
HELP = "pack a results folder (experiment, lock, data digests, raw events, records) into one archive for tuneoff reproduce"
EXAMPLE = "tuneoff bundle --output results/digits.tar.gz"
LIMIT_MB = 1000
MEGABYTE = 1_000_000  # bytes


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_results(parser)
    parser.add_argument(
        "--output",
        metavar="FILE",
        type=Path,
        help="the archive; default: DIR.tar.gz, next to the folder. Replaces only an earlier bundle of the same plan",
    )
    parser.add_argument("--checkpoints", action="store_true", help="include the checkpoint of each tested model")
    parser.add_argument(
        "--allow-unverified",
        action="store_true",
        help="pack a folder even if its numbers do not follow from its raw files; the bundle says so",
    )
    add_limit(parser, LIMIT_MB)
    parser.add_argument("--json", action="store_true", help="write what was packed as JSON")


def add_limit(parser: argparse.ArgumentParser, default: int) -> None:
    parser.add_argument(
        "--limit-mb", metavar="N", type=whole_number(1), default=default, help=f"largest size unpacked, in MB; default: {default}"
    )


def execute(arguments: argparse.Namespace) -> int:
    from tuneoff.trust.bundle.pack import SUFFIX, pack

    results: Path = arguments.results or newest_folder(needs_runs=True)
    target = arguments.output or results.absolute().parent / f"{results.absolute().name}{SUFFIX}"
    packed = pack(
        results,
        target,
        checkpoints=arguments.checkpoints,
        allow_unverified=arguments.allow_unverified,
        limit_bytes=arguments.limit_mb * MEGABYTE,
        note=note,
    )
    manifest = packed.manifest
    if arguments.json:
        write_json(
            {
                "bundle": str(packed.path.resolve()),
                "sha256": packed.sha256,
                "size_bytes": packed.size_bytes,
                "verified": manifest.verified,
                "missing": list(manifest.missing),
                "files": len(manifest.files),
            }
        )
        return 0
    if not manifest.verified:
        note(f"NOT VERIFIED, and the bundle says so: {manifest.problems[0]}")
    packed_line = f"bundled {counted(len(manifest.files), 'file')}; SHA-256 of the archive: {packed.sha256}"
    write("\n".join([*(f"missing: {printable(line)}" for line in manifest.missing), packed_line]))
    write(f"{printable(str(packed.path.resolve()))} ({packed.size_bytes / 1e6:.2f} MB)")
    return 0
