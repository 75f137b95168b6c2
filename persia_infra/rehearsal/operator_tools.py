"""The programs of operators and of PERSIA's own servers, built or fetched only when something asks for them.

Operators that are written in Go are built like every other program, from the modules pinned under `tools/`.
PERSIA's programs are inside its wheel, which pip fetches with the hash pinned in `tools/persia`. nats-server comes
as a binary with the `rehearsal` extra of this package.

Out of scope: PERSIA on anything but Linux x86-64, for which it was never published.
"""

import hashlib
import platform
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import zipfile
from collections.abc import Sequence
from pathlib import Path

from persia_infra.kube.programs import GoSource, OperatorProgram, WheelSource
from persia_infra.rehearsal.toolchain import (
    BuildLine,
    Progress,
    Toolchain,
    ToolMissing,
    built_programs,
    cache_folder,
    locked,
    tools_folder,
)

PERSIA_PROGRAMS = {
    "persia-operator": "persia/operator",
    "persia-gencrd": "persia/gencrd",
    "persia-embedding-parameter-server": "persia/persia-embedding-parameter-server",
    "persia-embedding-worker": "persia/persia-embedding-worker",
}
"""Where each program is in the wheel."""
PERSIA_LAUNCHER = tuple(f"persia/{module}.py" for module in ("launcher", "env", "logger", "utils"))
"""persia-launcher, without the package around it, which needs torch."""


def ensure_operators(
    programs: Sequence[OperatorProgram], progress: Progress, *, also: Sequence[GoSource] = ()
) -> Toolchain:
    """Builds or fetches the programs of operators; all of them take about 10 minutes on 2 cores, once.

    Args:
        programs: The programs of the operators.
        progress: Is told what is built.
        also: Further sources to build.
    """
    sources = [program.source for program in programs]
    found = built_programs([*(source for source in sources if isinstance(source, GoSource)), *also], progress)
    if any(isinstance(source, WheelSource) for source in sources):
        found |= ensure_persia(progress).programs
    return Toolchain(found | {each.program: each.source for each in programs if isinstance(each.source, Path)})


def ensure_persia(progress: Progress) -> Toolchain:
    """Returns PERSIA's operator, its embedding servers, and the nats-server that connects them."""
    pins = tools_folder() / "persia" / "requirements.txt"
    files = " ".join((*PERSIA_PROGRAMS.values(), *PERSIA_LAUNCHER))
    place = cache_folder() / "tools" / f"persia-{hashlib.sha256(pins.read_bytes() + files.encode()).hexdigest()[:12]}"
    with locked(place.with_name(".persia.lock")):
        if not place.is_dir():
            progress(BuildLine("  persia: fetching its wheel"))
            _unpack(pins, place)
    programs = {program: place / program for program in PERSIA_PROGRAMS}
    return Toolchain(programs | {"persia-launcher": place / PERSIA_LAUNCHER[0], "nats-server": _nats_server()})


def _unpack(pins: Path, place: Path) -> None:
    if (platform.system(), platform.machine()) != ("Linux", "x86_64"):
        raise ToolMissing("PERSIA's own programs exist for Linux x86-64 only; rehearse there, or without them")
    with tempfile.TemporaryDirectory(dir=place.parent, prefix=".fetching-") as temporary:
        folder, target = Path(temporary) / "wheel", Path(temporary) / "out"
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
        command += ["--only-binary=:all:", "--python-version=3.9", "--platform=manylinux2014_x86_64"]
        command += ["--require-hashes", f"--requirement={pins}", f"--dest={folder}"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            last = "\n".join(done.stderr.strip().splitlines()[-6:])
            raise ToolMissing(f"tools/persia: pip could not fetch the pinned wheel:\n{last}")
        target.mkdir()
        with zipfile.ZipFile(next(folder.glob("persia-*.whl"))) as wheel:
            for program, member in PERSIA_PROGRAMS.items():
                (target / program).write_bytes(wheel.read(member))
                (target / program).chmod(0o755)
            wheel.extractall(target, PERSIA_LAUNCHER)
        target.rename(place)


def _nats_server() -> Path:
    """Returns the nats-server of the environment that Python runs in, else the one on PATH."""
    beside = Path(sysconfig.get_path("scripts")) / "nats-server"
    if beside.is_file():
        return beside
    if found := shutil.which("nats-server"):
        return Path(found)
    raise ToolMissing("nats-server is not installed: pip install 'persia-infra[rehearsal]'")
