"""A powercap tree on disk: zones with the files that the kernel shows."""

from __future__ import annotations

from pathlib import Path

RANGE_UJ = 262_143_328_850  # of a server's package


def write_zone(root: Path, zone: str, name: str, energy_uj: int, range_uj: int | None = RANGE_UJ) -> Path:
    """Write one zone, and the control type that it belongs to."""
    (root / zone.partition(":")[0]).mkdir(parents=True, exist_ok=True)
    folder = root / zone
    folder.mkdir(parents=True)
    (folder / "name").write_text(f"{name}\n")
    set_energy(folder, energy_uj)
    if range_uj is not None:
        (folder / "max_energy_range_uj").write_text(f"{range_uj}\n")
    return folder


def set_energy(folder: Path, energy_uj: int) -> None:
    """Let a zone's counter stand at a value."""
    (folder / "energy_uj").write_text(f"{energy_uj}\n")


def two_sockets(root: Path) -> dict[str, Path]:
    """Write a server with two packages: cores and DRAM inside of each, the whole platform beside them."""
    zones = {
        "package-0": write_zone(root, "intel-rapl:0", "package-0", 1_000_000_000),
        "core-0": write_zone(root, "intel-rapl:0:0", "core", 700_000_000),
        "dram-0": write_zone(root, "intel-rapl:0:1", "dram", 300_000_000),
        "package-1": write_zone(root, "intel-rapl:1", "package-1", 2_000_000_000),
        "uncore-1": write_zone(root, "intel-rapl:1:0", "uncore", 50_000_000),
        "dram-1": write_zone(root, "intel-rapl:1:1", "dram", 500_000_000),
        "psys": write_zone(root, "intel-rapl:2", "psys", 9_000_000_000),
    }
    zones["mmio"] = write_zone(root, "intel-rapl-mmio:0", "package-0", 1_000_000_000)
    return zones
