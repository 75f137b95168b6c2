"""Each example project, rehearsed as its README says."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from persia_infra.rehearsal.toolchain import Toolchain
from tests.support.project import PROJECT

EXAMPLES = PROJECT / "examples"
STACKS = sorted((file.parent.name, file.name.split(".")[1]) for file in EXAMPLES.glob("*/Pulumi.*.yaml"))


@pytest.mark.parametrize(("project", "stack"), STACKS)
def test_example_passes_its_rehearsal(project: str, stack: str, tools: Toolchain) -> None:
    assert tools["pulumi"].is_file()
    command = [str(Path(sys.executable).parent / "persia-infra"), "rehearse", stack, "--destroy", "--json"]
    done = subprocess.run(command, cwd=EXAMPLES / project, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    report = json.loads(done.stdout)
    assert report["verdict"] == "pass"
    assert report["resources"]["kubernetes:core/v1:ConfigMap"] == 1
