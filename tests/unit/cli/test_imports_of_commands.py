"""Commands that read manifests are quick, because they import neither Pulumi nor a Kubernetes client."""

import subprocess
import sys

import pytest

from tests.support.project import PROJECT

HEAVY = ("pulumi", "pulumi_kubernetes", "pulumi_gcp", "kubernetes", "grpc")
PROGRAM = """
import sys
from persia_infra.cli.main import main
try:
    main()
except SystemExit as end:
    assert not end.code, end.code
roots = {name.partition(".")[0] for name in sys.modules}
print("heavy:", sorted(roots & set(%r)), file=sys.stderr)
"""


@pytest.mark.parametrize("command", ["check", "render"])
@pytest.mark.parametrize("manifest", ["persia/persia-job", "mpi/resnet50", "training/pod"])
def test_a_manifest_is_read_without_pulumi(command: str, manifest: str) -> None:
    file = PROJECT / "examples" / "manifests" / f"{manifest}.yaml"

    result = subprocess.run(
        [sys.executable, "-c", PROGRAM % (HEAVY,), command, str(file)], capture_output=True, text=True, check=False
    )

    assert result.returncode == 0, result.stderr
    assert result.stderr.splitlines()[-1] == "heavy: []"
    assert "kind: " in result.stdout or command == "check"


def test_a_stack_is_checked_without_pulumi() -> None:
    result = subprocess.run(
        [sys.executable, "-c", PROGRAM % (HEAVY,), "check", "dev"],
        capture_output=True,
        text=True,
        check=False,
        cwd=PROJECT,
    )

    assert result.returncode == 0, result.stderr
    assert result.stderr.splitlines()[-1] == "heavy: []"
