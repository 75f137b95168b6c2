"""`pulumi preview` of the dev stack against a flat program that declares the same resources."""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

from persia_infra.rehearsal import toolchain
from persia_infra.rehearsal.engine import Engine
from persia_infra.rehearsal.rehearse import Rehearsal
from tests.bench.table import alternately, table
from tests.support.project import PROJECT

GOAL = 1.15


def measure() -> str:
    command = [sys.executable, "-m", "tests.bench.flat_program"]
    program = subprocess.run(command, cwd=PROJECT, check=True, capture_output=True, text=True).stdout
    with tempfile.TemporaryDirectory() as folder, Rehearsal.start(toolchain.ensure(print)) as rehearsal:
        flat = Path(folder)
        (flat / "Pulumi.yaml").write_text(json.dumps({"name": "flat", "runtime": "python"}))
        (flat / "Pulumi.dev.yaml").write_text(json.dumps({"config": {}}))
        (flat / "__main__.py").write_text(program)
        by_hand, ours = rehearsal.engine(flat, "dev"), rehearsal.engine(PROJECT, "dev")
        seconds_by_hand, seconds_ours = alternately(7, lambda: _preview(by_hand), lambda: _preview(ours))
    return table(
        ["program", "`pulumi preview`, seconds (median of 7)", "ratio", "goal"],
        [
            [f"flat, {len(program.splitlines())} lines", f"{seconds_by_hand:.2f}", "1.00", ""],
            ["the dev stack", f"{seconds_ours:.2f}", f"{seconds_ours / seconds_by_hand:.2f}", f"at most {GOAL}"],
        ],
    )


def _preview(engine: Engine) -> float:
    outcome = engine.preview()
    if not outcome.ok:
        raise RuntimeError(f"{engine.project_folder}: {outcome.errors}")
    return outcome.seconds
