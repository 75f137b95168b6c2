"""The programs of the operators and of PERSIA's own servers, had only when something asks for them.

The operators that are written in Go are built as every other program is, from the modules pinned under
`tools/`. PERSIA's come inside its wheel, which pip fetches with the hash pinned in `tools/persia`. nats-server
comes as a binary with the `rehearsal` extra of this package.

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
from pathlib import Path

from persia_infra.rehearsal.toolchain import (
    Progress,
    Source,
    Toolchain,
    ToolMissing,
    built_programs,
    cache_folder,
    locked,
    main,
    tools_folder,
)

NATS_OPERATOR = Source(
    "nats-operator",
    "github.com/nats-io/nats-operator",
    ("github.com/nats-io/nats-operator/cmd/operator",),
    1,
    program="nats-operator",
)
MPI_OPERATOR = Source(
    "mpi-operator",
    "github.com/kubeflow/mpi-operator",
    ("github.com/kubeflow/mpi-operator/cmd/mpi-operator",),
    3,
    program="mpi-operator",
)
MPI_OPERATOR_BEFORE = Source(
    "mpi-operator-0.7",
    "github.com/kubeflow/mpi-operator",
    ("github.com/kubeflow/mpi-operator/cmd/mpi-operator",),
    3,
    program="mpi-operator-0.7",
)
"""What upgrades start from."""
PADDLE_OPERATOR = Source(
    "paddle-operator",
    "github.com/paddleflow/paddle-operator",
    ("github.com/paddleflow/paddle-operator",),
    1,
    program="paddle-operator",
)
VOLCANO = tuple(
    Source("volcano", "volcano.sh/volcano", (f"volcano.sh/volcano/cmd/{part}",), minutes, program=f"vc-{part}")
    for part, minutes in (("scheduler", 3), ("controller-manager", 1), ("webhook-manager", 1))
)
OPERATORS: tuple[Source, ...] = (NATS_OPERATOR, PADDLE_OPERATOR, MPI_OPERATOR, *VOLCANO)

PERSIA_PROGRAMS = {
    "persia-operator": "persia/operator",
    "persia-gencrd": "persia/gencrd",
    "persia-embedding-parameter-server": "persia/persia-embedding-parameter-server",
    "persia-embedding-worker": "persia/persia-embedding-worker",
}
"""Name of each program, and where it is in the wheel."""
PERSIA_LAUNCHER = tuple(f"persia/{module}.py" for module in ("launcher", "env", "logger", "utils"))
"""persia-launcher, without the package around it, which needs torch."""


def ensure_operators(progress: Progress, *, also: tuple[Source, ...] = ()) -> Toolchain:
    """Every operator's program, PERSIA's included; about 10 minutes on 2 cores where nothing is built yet."""
    return Toolchain(built_programs([*OPERATORS, *also], progress) | ensure_persia(progress).programs)


def ensure_persia(progress: Progress) -> Toolchain:
    """PERSIA's operator, its embedding servers, and the nats-server that they meet at."""
    pins = tools_folder() / "persia" / "requirements.txt"
    files = " ".join((*PERSIA_PROGRAMS.values(), *PERSIA_LAUNCHER))
    place = cache_folder() / "tools" / f"persia-{hashlib.sha256(pins.read_bytes() + files.encode()).hexdigest()[:12]}"
    with locked(place.with_name(".persia.lock")):
        if not place.is_dir():
            progress("  persia: fetching its wheel")
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
    """From the environment that Python runs in, else from PATH."""
    beside = Path(sysconfig.get_path("scripts")) / "nats-server"
    if beside.is_file():
        return beside
    if found := shutil.which("nats-server"):
        return Path(found)
    raise ToolMissing("nats-server is not installed: pip install 'persia-infra[rehearsal]'")


if __name__ == "__main__":
    main(lambda progress: ensure_operators(progress, also=(MPI_OPERATOR_BEFORE,)))
