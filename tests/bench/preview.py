"""`pulumi preview` of the dev stack against a flat program that declares the same resources."""

import json
import tempfile
from pathlib import Path

from persia_components.render import declared_for

from persia_infra.rehearsal import toolchain
from persia_infra.rehearsal.engine import Engine
from persia_infra.rehearsal.rehearse import Rehearsal
from persia_infra.stack import find_stack, load_stack
from tests.bench.table import alternately, table

PROJECT = Path(__file__).parents[2]
GOAL = 1.15


def flat_program() -> tuple[str, int]:
    """One statement for each resource, arguments written out: what a user without the library would have."""
    resources = declared_for("dev", load_stack(find_stack("dev", PROJECT)))
    lines = ["import pulumi", "import pulumi_gcp as gcp", "import pulumi_kubernetes as kubernetes", ""]
    for one in resources:
        package, module, kind = one.type.split(":")
        inputs = {key: value for key, value in one.inputs.items() if key not in ("apiVersion", "kind")}
        if package == "kubernetes":
            group, version = module.split("/")
            path = f"kubernetes.{group.split('.')[0]}.{version}"
        elif package == "gcp":
            path = "gcp." + module.split("/")[0]
        else:
            continue
        arguments = ", ".join(f"{_snake(key)}={value!r}" for key, value in inputs.items())
        lines.append(f"{path}.{kind}({one.name!r}, {arguments})")
    return "\n".join(lines), len(lines) - 4


def _snake(name: str) -> str:
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)


def measure() -> str:
    program, count = flat_program()
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
            [f"flat, {count} statements", f"{seconds_by_hand:.2f}", "1.00", ""],
            ["the dev stack", f"{seconds_ours:.2f}", f"{seconds_ours / seconds_by_hand:.2f}", f"at most {GOAL}"],
        ],
    )


def _preview(engine: Engine) -> float:
    outcome = engine.preview()
    if not outcome.ok:
        raise RuntimeError(f"{engine.project_folder}: {outcome.errors}")
    return outcome.seconds
