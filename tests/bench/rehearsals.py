"""`persia-infra rehearse dev` by phase: with nothing built or downloaded yet, and as it is from then on."""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.bench.table import table
from tests.support.project import PROJECT


def _phases(environment: dict[str, str]) -> dict[str, float]:
    command = [Path(sys.executable).parent / "persia-infra", "rehearse", "dev", "--destroy", "--json"]
    done = subprocess.run(
        command, cwd=PROJECT, env=os.environ | environment, stdout=subprocess.PIPE, text=True, check=True
    )
    return json.loads(done.stdout)["seconds"]


def measure() -> str:
    with tempfile.TemporaryDirectory() as folder:
        runs = {"cold": _phases({"PERSIA_INFRA_CACHE": folder})}
    runs["warm"] = _phases({})
    rows = [[phase, *(f"{run[phase]:.1f}" for run in runs.values())] for phase in runs["warm"]]
    rows.append(["all", *(f"{sum(run.values()):.1f}" for run in runs.values())])
    return table(["phase", *(f"{name}, seconds" for name in runs)], rows)
