"""`python -m tuneoff_faults.small_disk FOLDER KEPT MEGABYTES COMMAND...`: run a command whose FOLDER is a small disk.

The disk is a tmpfs over FOLDER, with what lies there copied onto it, in a mount name space of the command's own: nobody else sees
it, and it is gone with the last process. When the command has ended, what it left is copied to KEPT, without the file that filled
the disk. Exit code 99: no such disk can be made here.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import sys
from pathlib import Path

from tuneoff_faults.faulty import FILLING

CANNOT = 99
_NEW_MOUNTS, _PRIVATE, _ALL = 0x00020000, 1 << 18, 1 << 14  # CLONE_NEWNS, MS_PRIVATE, MS_REC


def main(folder: Path, kept: Path, megabytes: int, command: list[str]) -> int:
    """Return the command's exit code, or `CANNOT`."""
    before = [(path, path.read_bytes()) for path in folder.iterdir() if path.is_file()]
    libc, size = ctypes.CDLL(None), f"size={megabytes}m".encode()
    if (
        libc.unshare(_NEW_MOUNTS) != 0
        or libc.mount(b"none", b"/", None, _PRIVATE | _ALL, None) != 0
        or libc.mount(b"tmpfs", os.fsencode(folder), b"tmpfs", 0, size) != 0
    ):
        return CANNOT
    for path, content in before:
        path.write_bytes(content)
    (folder / "t").mkdir()
    os.chdir(folder)  # what was the working folder lies below the new disk
    code = subprocess.run(command, check=False).returncode if command else 0
    ignored = shutil.ignore_patterns(FILLING, "t", "*.sock", "sockets")
    shutil.copytree(folder, kept, ignore=ignored, symlinks=True, ignore_dangling_symlinks=True, dirs_exist_ok=True)
    return code


def can_mount(folder: Path) -> bool:
    """Tell whether such a disk can be made here, by making one."""
    command = [sys.executable, "-m", "tuneoff_faults.small_disk", str(folder), str(folder / "kept"), "1"]
    return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False).returncode == 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]), sys.argv[4:]))
