"""Write and read a run's `accounting.json`."""

from __future__ import annotations

from pathlib import Path

import msgspec

from tuneoff.base.files import read_regular
from tuneoff.errors import ResultsError
from tuneoff.experiment.accounting.declared import FILE_NAME, FORMAT_VERSION, NO_ACCOUNTING, Accounting


def write_accounting(run_dir: Path, accounting: Accounting) -> Path:
    """Write what the run is charged into its folder and return the path."""
    path = run_dir / FILE_NAME
    path.write_bytes(msgspec.json.format(msgspec.json.encode(accounting), indent=1) + b"\n")
    return path


def read_accounting(run_dir: Path) -> Accounting:
    """Read what a run is charged; a folder without the file has no intensity and no prices, and says so.

    Raises:
        ResultsError: it cannot be read, is damaged, or has another format version.
    """
    path = run_dir / FILE_NAME
    try:
        accounting = msgspec.json.decode(read_regular(path), type=Accounting)
    except FileNotFoundError:
        return NO_ACCOUNTING
    except OSError as error:
        raise ResultsError(f"{path} cannot be read: {error.strerror}") from error
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise ResultsError(f"{path} is damaged: {error}; remove it, and the run has no carbon and no cost") from error
    if accounting.format_version != FORMAT_VERSION:
        problem = f"has format version {accounting.format_version}, but this tuneoff reads version {FORMAT_VERSION}"
        raise ResultsError(f"{path} {problem}; use the tuneoff that wrote it")
    return accounting
