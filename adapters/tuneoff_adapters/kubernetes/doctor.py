"""What `tuneoff doctor` checks for adapters whose trials run in pods: the kubeconfig, an image of trials."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator

from tuneoff.adapter import Finding
from tuneoff.base.code_digest import code_digest
from tuneoff.base.packages import installed_version
from tuneoff.base.processes import run_to_end
from tuneoff.errors import InfrastructureError, MissingPackageError
from tuneoff_adapters.kubernetes.transport import client_configuration

TOOLS = ("podman", "docker")
SECONDS = 600.0  # with the download of the image
PROGRAMS = ("sh", "head")  # through which Katib runs a trial, and asks whether it was pruned
_QUESTION = (
    "import shutil; from tuneoff.base.code_digest import code_digest; "
    f"print(code_digest(), *(name for name in {PROGRAMS} if shutil.which(name) is None))"
)


def checks(image: str | None) -> Iterator[Finding]:
    """Yield the checks; with an image of trials, also whether the tuneoff in it is this one, to the letter."""
    yield from cluster()
    if image is None:
        return
    problem, exit_code, local_code = "", MissingPackageError.exit_code, code_digest()
    try:
        digest, *missing = answer_of(image)
        if digest != local_code:
            problem = f"{image} has tuneoff {digest[:12]}, and this is {local_code[:12]}; "
            problem += "build it anew (make image), or go to its commit"
        elif missing:
            problem = f"{image} lacks {' and '.join(missing)}, which Katib runs in it; take another base"
    except InfrastructureError as error:
        problem, exit_code = str(error), error.exit_code
    if problem:
        yield Finding(id="image", verdict="failed", text=problem, exit_code=exit_code)
    else:
        yield Finding(id="image", verdict="passed", text=f"{image} has this tuneoff")


def kubeconfigs() -> tuple[str, bool]:
    """Return the paths of the kubeconfig, and whether it is to be used: the client is installed, and one is named or there."""
    named, usual = os.environ.get("KUBECONFIG"), os.path.expanduser("~/.kube/config")
    return named or usual, installed_version("kubernetes") is not None and bool(named or os.path.isfile(usual))


def cluster() -> Iterator[Finding]:
    """Look at the kubeconfig, where the client is installed: whether one names a cluster."""
    if installed_version("kubernetes") is None:
        return
    paths, is_used = kubeconfigs()
    if not is_used:
        yield Finding(id="kubeconfig", verdict="passed", text=f"none ({paths}): platform kubernetes needs one")
        return
    try:
        client_configuration(None, None)
        yield Finding(id="kubeconfig", verdict="passed", text=f"{paths}; platform kubernetes takes it")
    except InfrastructureError as error:
        yield Finding(id="kubeconfig", verdict="warning", text=str(error))


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
        ended = run_to_end(command, SECONDS)
    except TimeoutError:
        raise InfrastructureError(f"{image} did not answer within {SECONDS:g} s; run: {tool} pull {image}") from None
    if ended.code != 0:
        # the last line that docker prints is a hint at its help
        lines = [line for line in ended.errors.splitlines() if line.strip() and not line.startswith("Run '")]
        reason = lines[-1].strip() if lines else f"exit code {ended.code}"
        raise InfrastructureError(f"{image} does not say which tuneoff it has ({reason}); build it anew, or correct its name")
    return ended.output.split()
