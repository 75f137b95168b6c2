"""All five operators in one environment: how long until they are ready, and what each process holds in memory."""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.bench.table import table
from tests.support.operator_project import STACK, write_project

OPERATORS = {"nats": {}, "mpi": {}, "paddle": {}, "persia": {}, "volcano": {"queues": {"research": {}}}}


def measure() -> str:
    with tempfile.TemporaryDirectory() as folder:
        write_project(Path(folder), OPERATORS)
        command = [Path(sys.executable).parent / "persia-infra", "rehearse", STACK, "-C", folder]
        done = subprocess.run([*command, "--operators", "--json"], stdout=subprocess.PIPE, text=True, check=True)
    report = json.loads(done.stdout)
    ready = report["seconds"]["up"] + report["seconds"]["operators"]
    rows = [[name, str(held["mebibytes"])] for name, held in report["operators"].items()]
    return f"From `pulumi up` to all operators ready: {ready:.1f} s.\n\n{table(['process', 'MiB'], rows)}"
