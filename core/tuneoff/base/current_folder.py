"""Whether processes can be started where a command was."""

from __future__ import annotations

import os


def current_folder_problem() -> str | None:
    """Return why no process can be started in the current folder, with the way out, or None."""
    try:
        os.chdir(os.getcwd())
    except FileNotFoundError:
        return "the current folder must exist, but it was removed; cd to another one"
    except OSError as error:
        return f"the current folder must be one that may be entered, but: {error.strerror} ({error.filename}); cd to another one"
    return None
