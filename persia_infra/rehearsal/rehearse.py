"""A rehearsal: the whole `pulumi up` of a stack on its own control plane, and the verdict.

The deployed program cannot tell that it is rehearsed. Out of scope: how long real machines take to start, whether
Google has them in stock, whether images exist and what runs inside the containers.
"""

import importlib.metadata
import json
import os
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self
from urllib.parse import urlsplit

from persia_infra.kube.kubeconfig import server_of
from persia_infra.kube.programs import OperatorProgram
from persia_infra.rehearsal import enclosure, toolchain
from persia_infra.rehearsal.control_plane import ControlPlane
from persia_infra.rehearsal.engine import Engine, Event, Outcome, stack_file_of
from persia_infra.rehearsal.isolation import refuse_cluster_settings
from persia_infra.rehearsal.observation import Observer, PendingPod, Pods
from persia_infra.rehearsal.operator_processes import OperatorProcesses
from persia_infra.rehearsal.operator_tools import ensure_operators
from persia_infra.rehearsal.toolchain import Toolchain

STUCK_AFTER_SECONDS = 25.0
SETTLE_WITHIN_SECONDS = 120.0
OPERATORS_QUIET_SECONDS = 8.0
OFFICIAL, SIMULATED = "official", "simulated"

Progress = Callable[[str], None]


@dataclass
class Report:
    """The result of a rehearsal, as `rehearse --json` prints it."""

    stack: str
    engine: str = ""
    kubernetes: str = ""
    provider: str = ""
    resources: dict[str, int] = field(default_factory=dict)
    nodes: dict[str, int] = field(default_factory=dict)
    pods: Pods = field(default_factory=lambda: Pods(0, (), ()))
    simulated: list[str] = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=dict)
    errors: list[str] = field(default_factory=list)
    changed_by_second_up: list[str] = field(default_factory=list)
    left_behind: list[str] = field(default_factory=list)
    operators: dict[str, int] = field(default_factory=dict)
    """The memory of each operator that ran, in MiB."""

    @property
    def passed(self) -> bool:
        return self.pods.all_running and not (self.errors or self.changed_by_second_up or self.left_behind)

    def as_json(self) -> dict[str, Any]:
        return {
            "stack": self.stack,
            "engine": self.engine,
            "kubernetes": self.kubernetes,
            "provider": self.provider,
            "resources": self.resources,
            "nodes": self.nodes,
            "pods": {
                "wanted": self.pods.wanted,
                "running": self.pods.running,
                "pending": self.pods.wanted - self.pods.running,
            },
            "running": list(self.pods.names),
            "pending": [{"pod": pod.pod, "reason": pod.reason} for pod in self.pods.pending],
            "simulated": self.simulated,
            "seconds": {phase: round(seconds, 2) for phase, seconds in self.seconds.items()},
            "errors": self.errors,
            "changed_by_second_up": self.changed_by_second_up,
            "left_behind": self.left_behind,
            "operators": {name: {"mebibytes": held} for name, held in self.operators.items()},
            "verdict": "pass" if self.passed else "fail",
        }


class Rehearsal:
    """A control plane with the simulated cloud and the engine attached to it."""

    def __init__(self, control_plane: ControlPlane, tools: Toolchain) -> None:
        self.control_plane = control_plane
        self.observer = Observer(control_plane.kubeconfig)
        self._tools = tools
        self.official_plugin = installed_kubernetes_plugin()
        self._providers = self._start_simulated_cloud()
        self._enclosure = self._open_gates() if enclosure.is_available() else []
        self._engines = 0

    @classmethod
    @contextmanager
    def start(cls, tools: Toolchain, progress: Progress = lambda _: None) -> Iterator[Self]:
        """Starts a control plane and the simulated cloud, and ends them afterwards."""
        with ControlPlane.start(tools, progress) as control_plane:
            progress("starting the simulated cloud")
            yield cls(control_plane, tools)

    @property
    def provider(self) -> str:
        """Which Kubernetes provider is used, `official` or `simulated`."""
        return OFFICIAL if self.official_plugin else SIMULATED

    def engine(self, project: Path, stack: str) -> Engine:
        """Prepares a stack; each engine has its own state."""
        self._engines += 1
        control_plane = self.control_plane
        providers = ",".join(f"{package}:{port}" for package, port in sorted(self._providers.items()))
        engine = Engine(
            project,
            stack,
            control_plane.folder / f"engine-{self._engines}",
            self._tools,
            control_plane.environment,
            providers,
            control_plane.supervisor,
            self._enclosure,
        )
        if self.official_plugin:
            engine.use_plugin(self.official_plugin)
        return engine

    def _start_simulated_cloud(self) -> dict[str, int]:
        """Returns the ports of the packages that the engine attaches to."""
        file = self.control_plane.folder / "ports.json"
        command: list[str | Path] = [sys.executable, "-P", "-m", "persia_infra.rehearsal.provider"]
        command += ["--kubeconfig", self.control_plane.kubeconfig, "--ports-file", file]
        self.control_plane.run_part("simulated-cloud", command, file.exists, self.control_plane.environment)
        ports: dict[str, int] = json.loads(file.read_text())
        if self.official_plugin:
            ports.pop("kubernetes")
        return ports

    def _open_gates(self) -> list[str]:
        """Lets enclosed commands reach the API server and the simulated cloud.

        Returns:
            The beginning of the command line of such commands.
        """
        folder = self.control_plane.folder
        api = urlsplit(server_of(self.control_plane.kubeconfig.read_text(), None)).port or 443
        ports = [api, *self._providers.values()]
        command: list[str | Path] = [*enclosure.gates(folder, ports)]
        self.control_plane.run_part(
            "gates", command, lambda: all(enclosure.gate(folder, port).exists() for port in ports)
        )
        return enclosure.enclosed(folder, ports)


def installed_kubernetes_plugin() -> Path | None:
    """Returns the installed official plugin if it has exactly the version of `pulumi_kubernetes`."""
    home = Path(os.environ.get("PULUMI_HOME") or Path.home() / ".pulumi")
    plugin = home / "plugins" / f"resource-kubernetes-v{importlib.metadata.version('pulumi-kubernetes')}"
    return plugin if (plugin / "pulumi-resource-kubernetes").is_file() else None


def rehearse(
    project: Path,
    stack: str,
    *,
    destroy: bool = False,
    operators: Sequence[OperatorProgram] = (),
    progress: Progress = lambda _: None,
    keep: Callable[[Rehearsal, Engine, Report], None] | None = None,
) -> Report:
    """Rehearses a stack: preview, up, a second up, and with `destroy` also destroy.

    Args:
        project: Folder of the Pulumi project.
        stack: Name of the stack.
        destroy: Whether to destroy the stack at the end and report what is left.
        operators: Programs of operators; those that the stack deploys run as processes, so that its jobs start.
        progress: Called with one line for each step.
        keep: Called at the end, while everything still runs; nothing is destroyed then.
    """
    refuse_cluster_settings(project, stack_file_of(project, stack))
    report = Report(stack)
    clock = _Clock(report.seconds)
    with clock.phase("tools"):
        tools = toolchain.ensure(progress)
        operator_tools = ensure_operators(operators, progress) if operators else None
    started = time.monotonic()
    with Rehearsal.start(tools, progress) as rehearsal:
        report.seconds["control plane"] = time.monotonic() - started
        report.kubernetes = rehearsal.observer.version()
        report.provider = rehearsal.provider
        before = rehearsal.observer.objects() if destroy else set()
        engine = rehearsal.engine(project, stack)
        report.engine = engine.version
        processes = OperatorProcesses(rehearsal.control_plane, operator_tools, operators) if operator_tools else None
        try:
            _deploy(rehearsal, engine, report, clock, progress, processes)
            if destroy and not keep:
                _destroy(rehearsal, engine, report, clock, progress, before)
                if processes:
                    # Without its rights an operator would end by itself, and count as a failed part.
                    processes.stop_all()
        finally:
            rehearsal.control_plane.check_alive()
        if keep:
            keep(rehearsal, engine, report)
    return report


def _deploy(
    rehearsal: Rehearsal,
    engine: Engine,
    report: Report,
    clock: "_Clock",
    progress: Progress,
    operators: OperatorProcesses | None,
) -> None:
    with clock.phase("preview"):
        progress("pulumi preview")
        preview = engine.preview(on_event=_count_steps("pulumi preview", progress))
    report.errors += preview.errors
    if not preview.ok:
        return
    stuck = StuckPods(rehearsal.observer)

    def give_up() -> bool:
        if operators:
            operators.start_all(progress)
        return stuck.for_too_long()

    with clock.phase("up"):
        progress("pulumi up")
        up = engine.up(on_event=_count_steps("pulumi up", progress), give_up=give_up)
    report.errors += _errors_of(up, stuck)
    if operators and up.ok:
        with clock.phase("operators"):
            operators.start_all(progress)
    with clock.phase("settle"):
        quiet = OPERATORS_QUIET_SECONDS if operators else 0.0
        report.pods = (
            rehearsal.observer.pods() if up.stopped or not up.ok else _settled(rehearsal.observer, progress, quiet)
        )
    if operators:
        report.operators = operators.memory()
    _describe(rehearsal, engine, report)
    if not up.ok:
        return
    with clock.phase("second up"):
        progress("pulumi up, again")
        again = engine.up(on_event=_count_steps("pulumi up, again", progress))
    report.errors += again.errors
    report.changed_by_second_up += again.changed


def _errors_of(up: Outcome, stuck: "StuckPods") -> list[str]:
    """Returns the errors of an update; for a cancelled one only the reason, not the engine's own messages."""
    if not up.stopped:
        return list(up.errors)
    pods = stuck.last.pending
    return [
        f"{len(pods)} pods stayed pending for {STUCK_AFTER_SECONDS:.0f} s and no pool could grow, so pulumi up was "
        "cancelled: change what the reasons of the pending pods name (pool sizes, requests, selectors, taints)"
    ]


def _describe(rehearsal: Rehearsal, engine: Engine, report: Report) -> None:
    resources = engine.resources()
    report.resources = dict(sorted(Counter(entry["type"] for entry in resources).items()))
    report.simulated = sorted({kind for kind in report.resources if kind.startswith("gcp:")})
    pools = [entry["outputs"]["name"] for entry in resources if entry["type"] == "gcp:container/nodePool:NodePool"]
    counted = rehearsal.observer.nodes()
    report.nodes = {pool: counted[pool] for pool in sorted({*pools, *counted})}


def _destroy(
    rehearsal: Rehearsal, engine: Engine, report: Report, clock: "_Clock", progress: Progress, before: set[str]
) -> None:
    with clock.phase("destroy"):
        progress("pulumi destroy")
        destroyed = engine.destroy(on_event=_count_steps("pulumi destroy", progress))
    report.errors += destroyed.errors
    if protected := [entry["urn"].rsplit("::", 1)[-1] for entry in engine.resources() if entry.get("protect")]:
        report.errors.append(
            f"{', '.join(protected)}: protected, so destroy is refused as it would be on Google Cloud: "
            "set deletionProtection to false, run up, then destroy"
        )
    report.left_behind = sorted(rehearsal.observer.objects() - before)


def _settled(observer: Observer, progress: Progress, quiet_seconds: float = 0.0) -> Pods:
    """Waits until all pods run and no new ones have appeared for `quiet_seconds`, or until they are stuck."""
    deadline = time.monotonic() + SETTLE_WITHIN_SECONDS
    stuck = StuckPods(observer)
    wanted, since = -1, time.monotonic()
    while True:
        finished = stuck.for_too_long()
        if stuck.last.wanted != wanted:
            wanted, since = stuck.last.wanted, time.monotonic()
        is_quiet = time.monotonic() - since >= quiet_seconds
        if finished or (stuck.last.all_running and is_quiet) or time.monotonic() > deadline:
            return stuck.last
        progress(f"waiting for {stuck.last.wanted - stuck.last.running} of {stuck.last.wanted} pods")
        time.sleep(1)


class StuckPods:
    """Detects pods that stay pending while nothing else changes."""

    def __init__(self, observer: Observer, clock: Callable[[], float] = time.monotonic) -> None:
        self._observer = observer
        self._clock = clock
        self._since = clock()
        self._seen: tuple[frozenset[PendingPod], int, int] | None = None
        self.last = Pods(0, (), ())

    def for_too_long(self) -> bool:
        """Looks again, and returns whether pods have been pending for too long without any change."""
        self.last = self._observer.pods()
        seen = (frozenset(self.last.pending), self.last.running, self._observer.nodes().total())
        if seen != self._seen or not self.last.pending:
            self._seen, self._since = seen, self._clock()
        return self._clock() - self._since > STUCK_AFTER_SECONDS


def _count_steps(phase: str, progress: Progress) -> Callable[[Event], None]:
    done = 0

    def on_event(event: Event) -> None:
        nonlocal done
        if event.get("resOutputsEvent"):
            done += 1
            progress(f"{phase}: {done} resources")

    return on_event


class _Clock:
    def __init__(self, seconds: dict[str, float]) -> None:
        self._seconds = seconds

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        started = time.monotonic()
        try:
            yield
        finally:
            self._seconds[name] = time.monotonic() - started
