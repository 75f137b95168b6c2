"""What holds between an environment's operators, its jobs, its pools and its namespaces."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from persia_infra.jobs import Job, MPIJobSpec, PaddleJobSpec, PersiaJobSpec, TrainingJobSpec
from persia_infra.operators import ScopedOperatorSpec
from persia_infra.spec import Finding

if TYPE_CHECKING:
    from persia_infra.environment import EnvironmentSpec


def needed_operators(job: Job) -> dict[str, str]:
    """The operators that a job does not run without, each with the reason."""
    needed: dict[str, str] = {}
    if isinstance(job, TrainingJobSpec):
        needed |= needed_operators(job.runs_as)
    elif isinstance(job, MPIJobSpec):
        needed["mpi"] = "an MPIJob is only an object until the MPI operator acts on it"
    elif isinstance(job, PaddleJobSpec):
        needed["paddle"] = "a PaddleJob is only an object until the Paddle operator acts on it"
    elif isinstance(job, PersiaJobSpec) and job.mode == "operator":
        needed["persia"] = "with mode: operator its pods are PERSIA's operator's to make"
    if isinstance(job, PersiaJobSpec) and job.own_nats and job.own_nats.mode == "operator":
        needed["nats"] = "with nats.mode: operator its NATS servers are the NATS operator's to make"
    if job.needs_volcano:
        needed["volcano"] = "its pods wait for Volcano to schedule them"
    return needed


def operator_findings(spec: "EnvironmentSpec") -> Iterator[Finding]:
    """All of them."""
    yield from _absent_findings(spec)
    yield from _place_findings(spec)


def _absent_findings(spec: "EnvironmentSpec") -> Iterator[Finding]:
    installed = spec.operators.installed
    for name, job in spec.jobs.items():
        for operator, reason in needed_operators(job).items():
            if operator not in installed:
                yield ("jobs", name), f"{reason}, and the environment has none; write operators: {{{operator}: {{}}}}"
                continue
            described = installed[operator]
            only = described.watched_namespace if isinstance(described, ScopedOperatorSpec) else None
            if only is not None and only != spec.namespace_of(job):
                yield (
                    ("jobs", name, "namespace"),
                    f"the {operator} operator watches {only} alone, so this job would never start; "
                    f"move it there or remove operators.{operator}.watchedNamespace",
                )
        queue = job.queue
        if queue and spec.operators.volcano and queue not in ("default", *spec.operators.volcano.queues):
            known = ", ".join(["default", *spec.operators.volcano.queues])
            yield (
                ("jobs", name, "queue"),
                f"no queue {queue!r} is described, so the job would wait for ever; add it to operators.volcano.queues "
                f"or write one of {known}",
            )


def _place_findings(spec: "EnvironmentSpec") -> Iterator[Finding]:
    for name, operator in spec.operators.installed.items():
        place = ("operators", name)
        pool = spec.operator_pool(operator)
        if operator.pool is not None and operator.pool not in spec.pools:
            known = ", ".join(spec.pools)
            yield (*place, "pool"), f"no pool {operator.pool!r} is described; write one of {known}"
        elif pool is None:
            yield (*place, "pool"), "no pool without GPUs is there for it, so it would stay Pending; add one to pools"
        only = operator.watched_namespace if isinstance(operator, ScopedOperatorSpec) else None
        if only is not None and only not in spec.namespaces:
            yield (*place, "watchedNamespace"), f"{only!r} is not among the environment's namespaces; add it there"
        if operator.namespace in spec.namespaces:
            yield (*place, "namespace"), "is one of the environment's own, and both would declare it; choose another"
