"""Whether an image of trials has this tuneoff, and what Katib runs there.

The image is run and asked: a label would tell of its build, not of its content.
"""

from __future__ import annotations

import shutil
import subprocess

from tuneoff.base.code_digest import code_digest
from tuneoff.errors import InfrastructureError, MissingPackageError

TOOLS = ("podman", "docker")
SECONDS = 600.0  # with the download of the image
PROGRAMS = ("sh", "head")  # through which Katib runs a trial, and asks whether it was pruned
_QUESTION = (
    "import shutil; from tuneoff.base.code_digest import code_digest; "
    f"print(code_digest(), *(name for name in {PROGRAMS} if shutil.which(name) is None))"
)


def problem_of(image: str) -> tuple[str, int]:
    """Return why an image does not fit this tuneoff, with the exit code for it; an empty text if it does."""
    here = code_digest()
    try:
        found, *missing = answer_of(image)
    except InfrastructureError as error:
        return str(error), error.exit_code
    if found == here and missing:
        return f"{image} lacks {' and '.join(missing)}, which Katib runs in it; take another base", MissingPackageError.exit_code
    if found == here:
        return "", 0
    text = f"{image} has tuneoff {found[:12]}, and this is {here[:12]}; build it anew (make image), or go to its commit"
    return text, MissingPackageError.exit_code


def answer_of(image: str) -> list[str]:
    """Return the `code_digest` of the tuneoff in an image, and which PROGRAMS it lacks; it runs without rights and network.

    Raises:
        InfrastructureError: there is no container tool, it cannot run the image, or the image has no such tuneoff.
    """
    tool = next((tool for tool in TOOLS if shutil.which(tool)), None)
    if tool is None:
        raise InfrastructureError(f"an image is asked by {' or '.join(TOOLS)}, but none of them is here; install one")
    rights = ["--network=none", "--read-only", "--cap-drop=all", "--security-opt=no-new-privileges"]
    command = [tool, "run", "--rm", *rights, "--entrypoint=python", image, "-c", _QUESTION]
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=SECONDS, check=False)
    except subprocess.TimeoutExpired:
        raise InfrastructureError(f"{image} did not answer within {SECONDS:g} s; run: {tool} pull {image}") from None
    if done.returncode != 0:
        # the last line that docker prints is a hint at its help
        told = [line for line in done.stderr.splitlines() if line.strip() and not line.startswith("Run '")]
        reason = told[-1].strip() if told else f"exit code {done.returncode}"
        raise InfrastructureError(f"{image} does not say which tuneoff it has ({reason}); build it anew, or correct its name")
    return done.stdout.split()
