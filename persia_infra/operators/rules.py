"""What holds between an environment's operators, its jobs, its pools and its namespaces."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from persia_infra.gke.pools import NodePoolSpec
from persia_infra.jobs import Job, MPIJobSpec, PaddleJobSpec, PersiaJobSpec, TrainingJobSpec
from persia_infra.jobs.run_job import VOLCANO, RunJob
from persia_infra.operators.specs import OperatorSpec, ScopedOperatorSpec
from persia_infra.spec.base import Finding, Place
from persia_infra.spec.quantity import format_quantity

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
    if job.needs_volcano or any(_volcano_words(job)):
        needed["volcano"] = "its pods wait for Volcano to schedule them"
    return needed


def _volcano_words(job: Job) -> Iterator[tuple[Place, str | None]]:
    """Where the manifest's own words ask for Volcano, and for which queue."""
    if isinstance(job, MPIJobSpec) and (policy := job.run_policy.scheduling_policy) and policy.queue:
        yield ("runPolicy", "schedulingPolicy", "queue"), policy.queue
    if isinstance(job, PaddleJobSpec) and (policy := job.scheduling_policy) and policy.queue:
        yield ("schedulingPolicy", "queue"), policy.queue
    if isinstance(job, RunJob) and not isinstance(job, TrainingJobSpec):
        for role in job.run_roles():
            if role.spec.template.spec.scheduler_name == VOLCANO:
                yield (*role.place, "template", "spec", "schedulerName"), None


def operator_findings(spec: "EnvironmentSpec") -> Iterator[Finding]:
    """All of them."""
    yield from _absent_findings(spec)
    yield from _place_findings(spec)


def _absent_findings(spec: "EnvironmentSpec") -> Iterator[Finding]:
    installed = spec.operators.installed
    for name, job in spec.jobs.items():
        for operator, reason in needed_operators(job).items():
            if operator not in installed:
                words = next(_volcano_words(job), None) if operator == "volcano" and not job.needs_volcano else None
                place = words[0] if words else ()
                yield (
                    ("jobs", name, *place),
                    f"{reason}, and the environment has none; write operators: {{{operator}: {{}}}}",
                )
                continue
            described = installed[operator]
            only = described.watched_namespace if isinstance(described, ScopedOperatorSpec) else None
            if only is not None and only != spec.namespace_of(job):
                yield (
                    ("jobs", name, "namespace"),
                    f"the {operator} operator watches {only} alone, so this job would never start; "
                    f"move it there or remove operators.{operator}.watchedNamespace",
                )
        if spec.operators.volcano is None:
            continue
        known = ("default", *spec.operators.volcano.queues)
        for place, queue in ((("queue",), job.queue), *_volcano_words(job)):
            if queue and queue not in known:
                yield (
                    ("jobs", name, *place),
                    f"no queue {queue!r} is described, so the job would wait for ever; add it to "
                    f"operators.volcano.queues or write one of {', '.join(known)}",
                )
        yield from ((("jobs", name, *place), said) for place, said in _taken_over_findings(job))


def _taken_over_findings(job: Job) -> Iterator[Finding]:
    """The MPI operator gives every job to Volcano where that is there."""
    for role in job.run_roles() if isinstance(job, MPIJobSpec) and not job.needs_volcano else ():
        if role.spec.template.spec.scheduler_name not in (None, VOLCANO):
            yield (
                (*role.place, "template", "spec", "schedulerName"),
                "has no effect: with Volcano in the environment the MPI operator gives it all pods; leave it out",
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
        else:
            yield from (((*place, *rest), said) for rest, said in _fit_findings(operator, pool, spec.pools[pool]))
        only = operator.watched_namespace if isinstance(operator, ScopedOperatorSpec) else None
        if only is not None and only not in spec.namespaces:
            yield (*place, "watchedNamespace"), f"{only!r} is not among the environment's namespaces; add it there"
        if operator.namespace in spec.namespaces:
            yield (*place, "namespace"), "is one of the environment's own, and both would declare it; choose another"


def _fit_findings(operator: OperatorSpec, name: str, pool: NodePoolSpec) -> Iterator[Finding]:
    for resource, wanted in operator.resources.effective_requests.items():
        offered = pool.allocatable.get(resource)
        if offered is None or wanted > offered:
            have = "none" if offered is None else format_quantity(offered, binary=resource == "memory")
            yield (
                ("resources",),
                f"asks for {format_quantity(wanted, binary=resource == 'memory')} {resource}, but a node of pool "
                f"{name} gives pods {have}, so it would stay Pending; ask for less or name a larger pool",
            )
