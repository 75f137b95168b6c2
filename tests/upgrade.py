"""Deploys a stack with another revision of this project, then previews it with the present one.

    .venv/bin/python -m tests.upgrade REVISION [STACK ...]

Both programs run on the same rehearsed control plane and the same Pulumi state, so this shows what an upgrade would
do to a deployed environment. It fails if anything would be created, replaced or deleted; updates are listed.
"""

import argparse
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from persia_infra.rehearsal import toolchain
from persia_infra.rehearsal.engine import Outcome
from persia_infra.rehearsal.rehearse import Rehearsal
from tests.support.project import PROJECT

STACKS = ("dev", "staging", "prod")
_PROGRAM = """\
import runpy
import sys
from pathlib import Path

root = Path({pointer!r}).read_text()
sys.path[:0] = [root, root + "/components"]
runpy.run_path(root + "/stacks/__main__.py", run_name="__main__")
"""


def main() -> int:
    """Returns 0 if every stack can be upgraded in place."""
    parser = argparse.ArgumentParser(prog="python -m tests.upgrade", description=__doc__)
    parser.add_argument("revision", help="the revision that the stacks are deployed with, such as a tag")
    parser.add_argument("stacks", nargs="*", default=STACKS, help=f"by default {', '.join(STACKS)}")
    given = parser.parse_args()
    failures = 0
    with tempfile.TemporaryDirectory() as temporary:
        before = Path(temporary) / "before"
        before.mkdir()
        archive = subprocess.run(["git", "archive", given.revision], cwd=PROJECT, check=True, capture_output=True)
        subprocess.run(["tar", "--extract"], cwd=before, input=archive.stdout, check=True)
        for stack in given.stacks:
            failures += not _upgrades(stack, before, Path(temporary) / stack)
    return 1 if failures else 0


def _upgrades(stack: str, before: Path, project: Path) -> bool:
    pointer = project / "root"
    project.mkdir()
    (project / "Pulumi.yaml").write_text("name: persia-infra\nruntime: python\n")
    (project / "__main__.py").write_text(_PROGRAM.format(pointer=str(pointer)))
    shutil.copy(before / "stacks" / f"Pulumi.{stack}.yaml", project)
    pointer.write_text(str(before))
    with Rehearsal.start(toolchain.ensure(print)) as rehearsal:
        engine = rehearsal.engine(project, stack)
        deployed = engine.up()
        if not deployed.ok:
            return _report(stack, "could not be deployed", deployed, deployed.errors)
        pointer.write_text(str(PROJECT))
        preview = engine.preview()
    worse = [change for change in preview.changed if not change.startswith("update ")]
    if not preview.ok or worse:
        return _report(stack, "cannot be upgraded in place", preview, [*preview.errors, *worse])
    updates = ", ".join(preview.changed) or "none"
    print(f"{stack}: {sum(deployed.changes.values())} resources, nothing is replaced; updates: {updates}")
    return True


def _report(stack: str, verdict: str, outcome: Outcome, lines: list[str] | tuple[str, ...]) -> bool:
    print(f"{stack}: {verdict} ({dict(outcome.changes)})", *lines, sep="\n  ")
    return False


if __name__ == "__main__":
    sys.exit(main())
