"""PERSIA jobs: prod at full size against kubectl, rendering, and how the cost grows with the number of jobs."""

import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import yaml

from persia_infra.rehearsal import toolchain
from persia_infra.rehearsal.engine import Engine, Outcome
from persia_infra.rehearsal.rehearse import Rehearsal
from tests.bench.table import alternately, table
from tests.support.project import PROJECT

PERSIA_INFRA = str(Path(sys.executable).parent / "persia-infra")
RENDER_PROD = [PERSIA_INFRA, "render", "prod"]
NAMESPACE = "training"
UP_GOAL = 2.0


def _edit(engine: Engine, change: Callable[[dict[str, Any]], None]) -> None:
    document = yaml.safe_load(engine.stack_file.read_text())
    change(document["config"]["persia-infra:environment"])
    engine.stack_file.write_text(yaml.safe_dump(document, sort_keys=False))


def _fine(outcome: Outcome) -> float:
    if not outcome.ok:
        raise RuntimeError("\n".join(outcome.errors))
    return outcome.seconds


def measure_up() -> str:
    """Both bring the same objects up on the same nodes, wait until every pod runs, and remove them again."""
    with Rehearsal.start(toolchain.ensure(print)) as rehearsal:
        engine = rehearsal.engine(PROJECT, "prod")
        kubectl = _Kubectl(rehearsal)
        jobs: dict[str, Any] = {}

        def remove_jobs() -> None:
            _edit(engine, lambda environment: jobs.update(environment.pop("jobs")))
            _fine(engine.up())

        def ours() -> float:
            _edit(engine, lambda environment: environment.update(jobs=jobs))
            seconds = _fine(engine.up())
            remove_jobs()
            return seconds

        remove_jobs()
        ours()  # The pools grow, so that both find the nodes they need from now on.
        seconds_theirs, seconds_ours = alternately(3, kubectl.up_and_down, ours)
    return table(
        ["the objects of prod's job, until all 529 pods run", "seconds (median of 3)", "ratio", "goal"],
        [
            ["`kubectl apply --server-side`, `kubectl rollout status`", f"{seconds_theirs:.1f}", "1.00", ""],
            ["`pulumi up`", f"{seconds_ours:.1f}", f"{seconds_ours / seconds_theirs:.2f}", f"at most {UP_GOAL}"],
        ],
    )


class _Kubectl:
    """What a user without this library would type, for the same objects."""

    def __init__(self, rehearsal: Rehearsal) -> None:
        self._environment = rehearsal.control_plane.environment
        rendered = subprocess.run([*RENDER_PROD, "--json"], cwd=PROJECT, check=True, capture_output=True).stdout
        documents = json.loads(rendered)
        # The namespace too: how strict it is depends on its jobs.
        objects = [one for one in documents if NAMESPACE in (_name(one, "namespace"), _name(one, "name"))]
        self._objects = _list(objects)
        self._own = _list([one for one in objects if one["kind"] != "Namespace"])
        self._rollouts = [
            f"{one['kind'].lower()}/{one['metadata']['name']}"
            for one in objects
            if one["kind"] in ("StatefulSet", "Deployment")
        ]

    def up_and_down(self) -> float:
        started = time.monotonic()
        self._run("apply", "--server-side", "--force-conflicts", "-f", "-", stdin=self._objects)
        for name in self._rollouts:
            self._run("rollout", "status", "--timeout=5m", "--namespace", NAMESPACE, name)
        seconds = time.monotonic() - started
        self._run("delete", "--wait", "--cascade=foreground", "-f", "-", stdin=self._own)
        return seconds

    def _run(self, *arguments: str, stdin: str | None = None) -> None:
        done = subprocess.run(
            ["kubectl", *arguments], env=self._environment, input=stdin, capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise RuntimeError(f"kubectl {arguments[0]}: {done.stderr[-500:]}")


def _list(objects: list[dict[str, Any]]) -> str:
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": objects})


def _name(document: dict[str, Any], key: str) -> str | None:
    return document.get("metadata", {}).get(key)


def measure_commands() -> str:
    manifest = "examples/manifests/persia/persia-job.yaml"
    rows = []
    for arguments, goal in ((["check", "prod"], 0.5), (["render", manifest], 0.5), (["render", "prod"], 3.0)):
        taken = []
        for _ in range(7):
            started = time.monotonic()
            subprocess.run([PERSIA_INFRA, *arguments], cwd=PROJECT, check=True, capture_output=True)
            taken.append(time.monotonic() - started)
        rows.append([f"`persia-infra {' '.join(arguments)}`", f"{median(taken):.2f}", f"at most {goal}"])
    return table(["command", "seconds, warm (median of 7)", "goal"], rows)


def measure_growth() -> str:
    rows = []
    with Rehearsal.start(toolchain.ensure(print)) as rehearsal:
        for count in (1, 10, 100):
            engine = rehearsal.engine(PROJECT, "dev")

            def several(environment: dict[str, Any], count: int = count) -> None:
                (job,) = environment["jobs"].values()
                files = ("globalConfig", "embeddingConfig")
                small = {key: value for key, value in job.items() if key not in files}
                paths = {"PERSIA_GLOBAL_CONFIG": "/data/global.yml", "PERSIA_EMBEDDING_CONFIG": "/data/embedding.yml"}
                small["persiaEnv"] = {**small["persiaEnv"], **paths}
                environment["jobs"] = {f"job-{index}": small for index in range(count)}

            _edit(engine, several)
            seen = engine.preview()
            rows.append((count, _fine(seen), sum(seen.changes.values())))
    (_, alone, first), *_rest = rows
    return table(
        ["jobs in one stack", "resources", "`pulumi preview`, seconds", "milliseconds for each further resource"],
        [
            [
                str(count),
                str(resources),
                f"{seconds:.1f}",
                "" if count == 1 else f"{1000 * (seconds - alone) / (resources - first):.1f}",
            ]
            for count, seconds, resources in rows
        ],
    )
