"""A project with a kind of job and an operator of its own."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.support.operator_project import STACK, write_project

FOLDER = Path(__file__).parent
JOBS: dict[str, Any] = {"nap": {"kind": "SleepJob", "sleepers": 3}, "doze": {"kind": "SleepJob", "seconds": 5}}
_REGISTERED_FIRST = "import sleep_kind; from persia_infra.cli.main import main; main()"


def write_own_project(folder: Path) -> None:
    """Fills the folder with a project whose program and command line know the kind `SleepJob`."""
    write_project(folder, {"sleep": {}}, jobs=JOBS)
    stacks = folder / "stacks"
    program = (stacks / "__main__.py").read_text()
    # Adding the kind takes this line.
    imported = "import sleep_kind  # noqa: F401\n"
    (stacks / "__main__.py").write_text(program.replace("import pulumi\n", f"{imported}import pulumi\n", 1))
    shutil.copy(FOLDER / "sleep_kind.py", stacks)
    operator = stacks / "sleep_operator.py"
    operator.write_text(f"#!{sys.executable}\n" + (FOLDER / "sleep_operator.py").read_text())
    operator.chmod(0o755)


def own_command(*arguments: str) -> list[str]:
    """The command line of this library after the project's own module."""
    return [sys.executable, "-c", _REGISTERED_FIRST, *arguments]


def own_variables(project: Path) -> dict[str, str]:
    """The variables with which Python finds the project's module."""
    return {**os.environ, "PYTHONPATH": str(project / "stacks")}


def run_own(project: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    """Runs the command line in the project, with the project's own kinds."""
    return subprocess.run(
        own_command(*arguments), cwd=project, env=own_variables(project), capture_output=True, text=True, check=False
    )


def as_json(done: "subprocess.CompletedProcess[str]") -> Any:
    """What a command printed with --json."""
    assert done.stdout, done.stderr
    return json.loads(done.stdout)


__all__ = ["JOBS", "STACK", "as_json", "own_command", "own_variables", "run_own", "write_own_project"]
