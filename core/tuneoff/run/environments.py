"""Environments of an adapter's own: made before anything is measured, held while they are used, listed and removed.

One is complete once it has its `environment.json`, which is written last: what an interrupted command leaves has none, and is
made anew. Its lock is held by the command that makes it and by the installer that it started, then, shared, by each that uses it.
"""

from __future__ import annotations

import ast
import contextlib
import fcntl
import functools
import hashlib
import importlib.util
import json
import os
import re
import shutil
import stat
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tuneoff.base.commands import OWN, command, install_command
from tuneoff.base.files import read_json, replacing, sha256_of
from tuneoff.base.format import duration_text, listed
from tuneoff.base.interrupting import interrupting
from tuneoff.base.json_values import field_values
from tuneoff.base.packages import canonical, distributions, installed_version, release
from tuneoff.base.process_limits import die_with_parent
from tuneoff.base.processes import end_all, in_session, run_to_end
from tuneoff.base.reading import read
from tuneoff.errors import MissingPackageError
from tuneoff.experiment.environments import CACHE_VARIABLE, Recipe, cache, files_of, name_of, recipe_of
from tuneoff.experiment.spec import RunSpec

BUILT = "environment.json"
MEGABYTE = 10**6
FILES = "files"  # what environments that pip made have in common
_FULL = re.compile(r"no space left on device|os error 28|disk quota exceeded", re.IGNORECASE)
_AWAY = re.compile(
    r"dns error|name resolution|error sending request|NewConnectionError|connection (refused|timed out)|ConnectTimeout|"
    r"network is unreachable|network was disabled",
    re.IGNORECASE,
)
_ABSENT = re.compile(r"(?:no version of|No matching distribution found for) ([A-Za-z0-9][\w.-]*)(?:\[[\w,.-]+\])?==([\w.+!-]*\w)")
_UNBUILT = re.compile(  # of uv, and of pip
    r"Failed to build `(?P<by_uv>[\w.-]+?)==|"
    r"(?:Processing \S*/|Collecting )(?P<by_pip>\w[\w.]*)(?:(?!\nProcessing|\nCollecting)[\s\S])*?subprocess-exited-with-error"
)
_VERSIONS = re.compile(r"\(from versions: ([^)]*)\)")
_UV_SETTINGS = {  # of pip, and what uv calls them
    "index-url": "UV_DEFAULT_INDEX",
    "extra-index-url": "UV_INDEX",
    "find-links": "UV_FIND_LINKS",
    "trusted-host": "UV_INSECURE_HOST",
    "cert": "SSL_CERT_FILE",
    "proxy": "ALL_PROXY",
}
Tell = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class BuiltEnvironment:
    """A complete environment, as its file has it. `packages`: its lock, versions by canonical name; `dropped`: the constraints
    that its pins refuse; `bytes`: of all its files, `linked_bytes` of those that others share; `fingerprint`: of names, sizes
    and times of its files.
    """

    recipe: Recipe
    packages: Mapping[str, str]
    dropped: tuple[str, ...]
    maker: str
    seconds: float
    bytes: int
    linked_bytes: int
    fingerprint: str

    @property
    def size_text(self) -> str:
        shared = f", {self.linked_bytes / MEGABYTE:.0f} MB of them shared" if self.linked_bytes else ""
        return f"{self.bytes / MEGABYTE:.0f} MB{shared}"


def asked_for(specs: Iterable[RunSpec]) -> dict[Recipe, str]:
    """Return the environments that runs need, and what each is called: `optuna==4.5.0`."""
    recipes: dict[Recipe, dict[str, None]] = {}
    for spec in specs:
        if spec.environment is not None:
            recipes.setdefault(recipe_of(spec), {})[f"{spec.adapter}{spec.environment.text}"] = None
    return {recipe: listed(names) for recipe, names in recipes.items()}


@contextlib.contextmanager
def ready(specs: Iterable[RunSpec], tell: Tell = lambda text: None, *, offline: bool = False) -> Iterator[None]:
    """Make the environments that runs need and that are not there, and keep them from being removed while the block runs.

    Raises:
        MissingPackageError: one cannot be made, is not there with `offline`, or was altered.
        KeyboardInterrupt: SIGINT, SIGTERM or SIGHUP while one is made; nothing of it is left.
    """
    with contextlib.ExitStack() as locks:
        for recipe, label in asked_for(specs).items():
            lock = locks.enter_context(_lock(recipe.folder))
            fcntl.flock(lock, fcntl.LOCK_SH)
            while (built := read_built(recipe.folder)) is None:
                if offline:
                    problem = f"{label} needs an environment that is not there, and --offline makes none"
                    raise MissingPackageError(f"{problem}; with a network run the same without it")
                from tuneoff.run.supervisor.guardian import watching  # which ends what an installer has left, if this is killed

                with interrupting(), watching():
                    try:
                        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    except BlockingIOError:
                        tell(f"environment {label}: waits for another command, which makes it")
                        fcntl.flock(lock, fcntl.LOCK_EX)
                    if read_built(recipe.folder) is None:
                        _make(recipe, label, lock, tell)
                fcntl.flock(lock, fcntl.LOCK_SH)
            if built.fingerprint != _fingerprint(recipe.folder)[0]:
                problem = f"the environment of {label} must stay as it was made, but {recipe.folder} was altered"
                raise MissingPackageError(f"{problem}; remove it: {command('environments', '--remove', recipe.digest)}")
        yield


def environment_lines(specs: Iterable[RunSpec]) -> Iterator[str]:
    """Yield a line on each environment that runs need: that it is there, or what it would be made of, and about how large."""
    for recipe, label in asked_for(specs).items():
        if (built := read_built(recipe.folder)) is not None:
            yield f"environment {label}: there, {built.size_text}"
            continue
        size = estimated_bytes(recipe)
        about = "size unknown" if size is None else f"about {size / MEGABYTE:.0f} MB, estimated from what is installed here"
        of = ", ".join(recipe.requirements)
        yield f"environment {label}: would be made of {of} for Python {recipe.python_version}; {about}"


def built_for(spec: RunSpec) -> BuiltEnvironment | None:
    """Return the environment of its own that a run has; None: it has none, or that is not there."""
    return None if spec.environment is None else read_built(recipe_of(spec).folder)


def read_built(folder: Path) -> BuiltEnvironment | None:
    """Return what is in an environment's folder, None where it is not complete."""
    try:
        built: BuiltEnvironment = read(BuiltEnvironment, read_json(folder / BUILT), exact=True)
    except (OSError, ValueError):
        return None
    return built if (folder / "bin/python").exists() else None


def all_built() -> list[tuple[Path, BuiltEnvironment | None]]:
    """Return the folders of all environments, and what is in them; None: it is not complete."""
    return [(folder, read_built(folder)) for folder in sorted(cache().glob("*/")) if folder.name != FILES]


def remove(folder: Path) -> None:
    """Remove an environment, and what no other one shares with it.

    Raises:
        MissingPackageError: a command uses or makes it.
    """
    with _lock(folder) as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise MissingPackageError(f"environment {folder.name} is used by another command; wait for its end") from error
        _remove(folder)
        for path in (cache() / FILES).glob("*/*"):
            if path.stat().st_nlink == 1:
                path.unlink()


def estimated_bytes(recipe: Recipe) -> int | None:
    """Return about how many bytes an environment will have, by what is installed here; None: nothing of it is."""
    from importlib import metadata

    names, sizes = [name_of(requirement) for requirement in (*recipe.requirements, OWN)], dict[str, int]()
    while names:
        name = canonical(names.pop())
        if name in sizes or installed_version(name) is None:
            continue
        distribution = metadata.distribution(name)
        sizes[name] = sum(file.size or 0 for file in distribution.files or ())
        names += [name_of(text) for text in distribution.requires or () if "extra ==" not in text]
    return sum(sizes.values()) if sizes.keys() - {OWN} else None


def _private(folder: Path) -> None:
    """Raise MissingPackageError where somebody else could put code into the cache."""
    for path in (folder.parent, folder):
        status = os.lstat(path)
        if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid() or status.st_mode & 0o022:
            rule = f"{path} must be a folder of this user into which nobody else can write, as its code is run"
            raise MissingPackageError(f"{rule}; set {CACHE_VARIABLE} to another folder")


@contextlib.contextmanager
def _lock(folder: Path) -> Iterator[int]:
    """Give the open lock of an environment, which stays when that is removed."""
    try:
        folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        _private(folder.parent)
        lock = os.open(folder.with_suffix(".lock"), os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    except OSError as error:
        problem = f"{error.filename or folder.parent} cannot be used for environments: {error.strerror}"
        raise MissingPackageError(f"{problem}; set {CACHE_VARIABLE} to another folder") from error
    try:
        yield lock
    finally:
        os.close(lock)


def _make(recipe: Recipe, label: str, lock: int, tell: Tell) -> None:
    folder, log, started = recipe.folder, recipe.folder.with_suffix(".log"), time.monotonic()
    uv = _uv()
    what = f"{', '.join(recipe.requirements)} for Python {recipe.python_version}"
    tell(f"environment {label}: {what}, is made by {'uv' if uv else 'pip'}")
    try:
        _remove(folder)
        log.unlink(missing_ok=True)
        if not _ended_well([recipe.python, "-m", "venv", "--without-pip", str(folder)], log, lock):
            raise _failure(label, log, uv)
        dropped = _install(recipe, label, log, lock, uv)
        site = next(folder.glob("lib/python*/site-packages"))
        if not uv:
            _link(site)
        _ended_well([str(folder / "bin/python"), "-m", "compileall", "-q", "-j", "0", str(site)], log, lock)  # or runs would
        fingerprint, size, linked = _fingerprint(folder)
        built = BuiltEnvironment(
            recipe=recipe,
            packages=distributions([str(site)]),
            dropped=dropped,
            maker=run_to_end([uv, "--version"]).output.strip() if uv else f"pip {installed_version('pip')}",
            seconds=time.monotonic() - started,
            bytes=size,
            linked_bytes=linked,
            fingerprint=fingerprint,
        )
        with replacing(folder / BUILT) as file:
            file.write(json.dumps(field_values(built), indent=1).encode())
        log.unlink()
    except OSError as error:
        problem = f"the environment of {label} cannot be made: {error.strerror} ({error.filename or folder})"
        raise MissingPackageError(f"{problem}; free space, or set {CACHE_VARIABLE} to another folder") from error
    finally:
        if read_built(folder) is None:
            _remove(folder)
    lacking = f"; its pins refuse the versions of this environment: {', '.join(dropped)}" if dropped else ""
    tell(f"environment {label}: made in {duration_text(built.seconds)}, {built.size_text}{lacking}")


def _install(recipe: Recipe, label: str, log: Path, lock: int, uv: str | None) -> tuple[str, ...]:
    """Install what a recipe asks for, and return the constraints that could not be kept."""
    python, constraints, dropped = str(recipe.folder / "bin/python"), list(recipe.constraints), list[str]()
    installer, environment = [sys.executable, "-m", "pip", "--python", python, "install", "--no-compile"], dict(os.environ)
    if uv is not None:
        settings = _pip_settings()
        more = ["--no-index"] if settings.get("no-index") in ("1", "true", "yes") else []
        installer, environment = [uv, "pip", "install", "--python", python, *more], _for_uv(settings)
    with tempfile.TemporaryDirectory(dir=recipe.folder) as temporary:  # what SIGKILL leaves goes with the folder
        wheels = [str(_wheel(name, Path(temporary))) for name, _ in recipe.copied]
        bounds = Path(temporary, "constraints.txt")
        while True:
            bounds.write_text("".join(f"{text}\n" for text in constraints))
            if _ended_well([*installer, "--constraint", str(bounds), *wheels, *recipe.requirements], log, lock, environment):
                return tuple(dropped)
            text = _problem(log)
            refused = [bound for bound in constraints if re.search(rf"(?<![\w.-]){name_of(bound)}(?![\w-])", text, re.IGNORECASE)]
            if not refused or _FULL.search(text) or _AWAY.search(text):
                raise _failure(label, log, uv)
            dropped += refused
            constraints = [bound for bound in constraints if bound not in refused]
            log.unlink()


def _uv() -> str | None:
    """Return the path of uv, or None where it is missing; pip takes its place, where that is there."""
    path = shutil.which("uv", path=os.pathsep.join((str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath))))
    if path is None and importlib.util.find_spec("pip") is None:
        raise MissingPackageError(
            f"an environment is made by uv or pip, but neither is here; run: {install_command('tuneoff[environments]')}"
        )
    return path


def _pip_settings() -> dict[str, str]:
    """Return pip's settings by option: its files', and over them the variables'."""
    variables = {name.removeprefix("PIP_"): text for name, text in os.environ.items() if name.startswith("PIP_")}
    return _pip_files() | {name.lower().replace("_", "-"): text for name, text in variables.items()}


@functools.cache
def _pip_files() -> dict[str, str]:
    """Return what pip's files set; nothing where pip is missing."""
    ended = run_to_end([sys.executable, "-m", "pip", "config", "list"])
    lines = (line.partition("=") for line in ended.output.splitlines()) if ended.code == 0 else ()
    stated = [(*key.rsplit(".", 1), ast.literal_eval(value)) for key, _, value in lines if "." in key]
    return {option: text for section in ("global", "install") for where, option, text in stated if where == section}


def _for_uv(settings: Mapping[str, str]) -> dict[str, str]:
    values = {uv: ",".join(settings[pip].split()) for pip, uv in _UV_SETTINGS.items() if settings.get(pip)}
    separated = {
        name: text.replace(",", " ") if name in ("UV_INDEX", "UV_INSECURE_HOST") else text for name, text in values.items()
    }
    best = {"UV_INDEX_STRATEGY": "unsafe-best-match"} if "UV_INDEX" in values else {}  # as pip takes it from several
    return {"UV_PYTHON_DOWNLOADS": "never", **separated, **best, **os.environ}


def _ended_well(words: Sequence[str], log: Path, lock: int, environment: Mapping[str, str] = os.environ) -> bool:
    """Run a program to its end, which dies with this one; what it started has the lock until then, so no other command begins."""
    die = functools.partial(die_with_parent, parent=os.getpid())
    with log.open("ab") as output:
        process = subprocess.Popen(
            words,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            env=environment,
            pass_fds=[lock],
            start_new_session=True,
            preexec_fn=die,
        )
        try:
            return process.wait() == 0
        finally:
            end_all(lambda: in_session(process.pid))
            process.wait()


def _wheel(distribution: str, folder: Path) -> Path:
    """Make a wheel of an installed distribution's own files: of an editable one, with what leads to its code."""
    from importlib import metadata

    installed = metadata.distribution(distribution)
    tag = re.search(r"^Tag: (\S+)$", installed.read_text("WHEEL") or "", re.MULTILINE)
    name = f"{canonical(distribution).replace('-', '_')}-{installed.version}-{tag[1] if tag is not None else 'py3-none-any'}.whl"
    info = next(file for file in files_of(distribution) if file.endswith(".dist-info/METADATA")).removesuffix("/METADATA")
    with zipfile.ZipFile(folder / name, "w") as wheel:
        for file in files_of(distribution):
            wheel.write(str(installed.locate_file(file)), file)
        wheel.writestr(f"{info}/RECORD", "".join(f"{file},,\n" for file in files_of(distribution)))
    return folder / name


def _link(site: Path) -> None:
    """Link an environment's files with the equal ones of others."""
    for path in site.rglob("*"):
        if path.is_symlink() or not path.is_file():
            continue
        digest, mode = sha256_of(path), path.stat().st_mode & 0o777
        shared = cache() / FILES / digest[:2] / f"{digest}-{mode:o}"
        shared.parent.mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(FileExistsError):
            os.link(path, shared)
        twin = path.with_name(f"{path.name}.linked")
        os.link(shared, twin)
        twin.replace(path)


def _fingerprint(folder: Path) -> tuple[str, int, int]:
    """Return the digest of names, sizes and times of an environment's files, how many bytes all have, and the shared ones."""
    total, size, shared = hashlib.sha256(), 0, 0
    for above, folders, names in os.walk(folder):
        folders.sort()
        for name in sorted(names):
            path = Path(above, name)
            status = path.lstat()
            size += status.st_size
            shared += status.st_size if status.st_nlink > 1 else 0
            if name != BUILT and path.suffix != ".pyc":
                total.update(f"{path.relative_to(folder)}\0{status.st_size}\0{status.st_mtime_ns}\n".encode())
    return total.hexdigest()[:16], size, shared


def _remove(folder: Path) -> None:
    (folder / BUILT).unlink(missing_ok=True)  # first: what is left is none
    shutil.rmtree(folder, ignore_errors=True)


def _problem(log: Path) -> str:
    """Return what an installer printed from its first error on."""
    text = log.read_text(errors="replace")
    first = re.search(r"^\s*(?:error|ERROR|×)\b", text, re.MULTILINE)
    return text[first.start() :] if first is not None else text


def _failure(label: str, log: Path, uv: str | None) -> MissingPackageError:
    """Return why an environment cannot be made, in one line with the way out."""
    text, whole = _problem(log), log.read_text(errors="replace")
    if _FULL.search(whole):
        why, way_out = "the disk is full", f"free space, or set {CACHE_VARIABLE} to another folder than {log.parent}"
    elif _AWAY.search(whole):
        why, way_out = "the package index cannot be reached", "try again with a network, or set PIP_INDEX_URL or PIP_FIND_LINKS"
    elif (absent := _ABSENT.search(text)) is not None:
        name, version = absent[1], absent[2]
        near = _nearest(name, version, whole, uv)
        why = f"{name} {version} does not exist for this Python"
        way_out = f"the nearest that do: {listed(near)}" if near else f"the index has no release of {name}"
    elif (unbuilt := _UNBUILT.search(whole)) is not None:
        why = f"{unbuilt['by_uv'] or unbuilt['by_pip']} has no wheel for this Python and cannot be built here"
        way_out = f"choose another release, or install what its build needs; see {log}"
    else:
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        why, way_out = " ".join(lines[:2]) or "the installer failed", f"see {log}"
    return MissingPackageError(f"the environment of {label} cannot be made: {why}; {way_out}")


def _nearest(name: str, version: str, log: str, uv: str | None) -> list[str]:
    """Return the releases next to one that does not exist: the last before it, and the first after it."""
    if uv is None:
        versions = [text for match in _VERSIONS.finditer(log) for text in match[1].split(", ") if text != "none"]
        before = [text for text in versions if release(text) < release(version)]
        after = [text for text in versions if release(text) > release(version)]
        return [*([max(before, key=release)] if before else []), *([min(after, key=release)] if after else [])]
    near = []
    with tempfile.NamedTemporaryFile("w", suffix=".in") as file:
        for sign, resolution in (("<", "highest"), (">", "lowest-direct")):
            file.seek(0)
            file.truncate()
            file.write(f"{name}{sign}{version}\n")
            file.flush()
            options = ["--quiet", "--no-deps", "--no-header", "--no-annotate", "--resolution"]
            words = [uv, "pip", "compile", *options, resolution, file.name]
            ended = run_to_end(words, environment=_for_uv(_pip_settings()))
            near += re.findall(r"^[\w.-]+==(\S+)", ended.output, re.MULTILINE)[:1] if ended.code == 0 else []
    return near
