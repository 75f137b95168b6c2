"""All five operators in one environment: how long until they are ready, and what each process holds in memory."""

import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.bench.table import table

PROJECT = Path(__file__).parents[2]
STACK = """\
config:
  persia-infra:environment:
    project: persia-example
    region: us-central1
    cluster: {zones: [us-central1-a], authorizedNetworks: [{cidr: 203.0.113.0/24}], deletionProtection: false}
    pools: {cpu: {machineType: n2-standard-8, count: 2}}
    operators: {nats: {}, mpi: {}, paddle: {}, persia: {}, volcano: {queues: {research: {}}}}
"""


def measure() -> str:
    with tempfile.TemporaryDirectory() as folder:
        project = Path(folder)
        (project / "stacks").mkdir()
        shutil.copy(PROJECT / "Pulumi.yaml", project)
        shutil.copy(PROJECT / "stacks" / "__main__.py", project / "stacks")
        (project / "stacks" / "Pulumi.operators.yaml").write_text(STACK)
        command = [Path(sys.executable).parent / "persia-infra", "rehearse", "operators", "-C", project]
        done = subprocess.run([*command, "--operators", "--json"], stdout=subprocess.PIPE, text=True, check=True)
    report = json.loads(done.stdout)
    ready = report["seconds"]["up"] + report["seconds"]["operators"]
    rows = [[name, str(held["mebibytes"])] for name, held in report["operators"].items()]
    return f"From `pulumi up` to all operators ready: {ready:.1f} s.\n\n{table(['process', 'MiB'], rows)}"
