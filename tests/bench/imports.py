"""Importing the environment with its spec, against importing the parts of the SDKs that it declares resources with."""

import subprocess
import sys
import time

from tests.bench.table import alternately, table

ALONE = (
    "import pydantic, yaml, pulumi_gcp.compute, pulumi_gcp.container, pulumi_gcp.projects, pulumi_gcp.serviceaccount; "
    "import pulumi_kubernetes.core.v1"
)
OURS = "from persia_components import Environment; from persia_infra.stack import parse_environment"
GOAL = 1.5


def _seconds(statement: str) -> float:
    started = time.monotonic()
    subprocess.run([sys.executable, "-c", statement], check=True)
    return time.monotonic() - started


def measure() -> str:
    nothing, alone, ours = alternately(11, lambda: _seconds("pass"), lambda: _seconds(ALONE), lambda: _seconds(OURS))
    ratio = (ours - nothing) / (alone - nothing)
    return table(
        ["statement", "seconds (median of 11, without the start of Python)", "ratio", "goal"],
        [
            [f"`{ALONE}`", f"{alone - nothing:.2f}", "1.00", ""],
            [f"`{OURS}`", f"{ours - nothing:.2f}", f"{ratio:.2f}", f"at most {GOAL}"],
        ],
    )
