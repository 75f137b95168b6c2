"""Checks across an environment's operators, jobs, pools and namespaces."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from persia_infra.jobs import Job
from persia_infra.kube.requests import container_requests
from persia_infra.spec.base import Finding

if TYPE_CHECKING:
    from persia_infra.environment import EnvironmentSpec


def operator_findings(spec: "EnvironmentSpec") -> Iterator[Finding]:
    """Yields everything that is wrong with the operators, and with the jobs that need them."""
    for name, job in spec.jobs.items():
        for place, message in _job_findings(spec, job):
            yield ("jobs", name, *place), message
    for name in spec.operators.installed:
        for place, message in _operator_findings(spec, name):
            yield ("operators", name, *place), message


def _job_findings(spec: "EnvironmentSpec", job: Job) -> Iterator[Finding]:
    installed = spec.operators.installed
    for operator, reason in job.needed_operators().items():
        if operator not in installed:
            asked = next(job.queue_requests(), None) if operator == "volcano" and not job.needs_volcano else None
            yield (
                asked.place if asked else (),
                f"{reason}, but the environment does not install it; write operators: {{{operator}: {{}}}}",
            )
            continue
        only = installed[operator].only_namespace
        if only is not None and only != spec.namespace_of(job):
            yield (
                ("namespace",),
                f"the {operator} operator watches only {only}, so this job would never start; "
                f"move it there or remove operators.{operator}.watchedNamespace",
            )
    queues = spec.operators.queues
    if queues is None:
        return
    requests = ((("queue",), job.queue), *((request.place, request.queue) for request in job.queue_requests()))
    for place, queue in requests:
        if queue and queue not in queues:
            yield (
                place,
                f"there is no queue {queue!r}, so the job would wait forever; add it to "
                f"operators.volcano.queues or write one of {', '.join(queues)}",
            )
    yield from job.findings_beside_volcano()


def _operator_findings(spec: "EnvironmentSpec", name: str) -> Iterator[Finding]:
    operator = spec.operators.installed[name]
    pool = spec.operator_pool(operator)
    if operator.pool is not None and operator.pool not in spec.pools:
        yield ("pool",), f"there is no pool {operator.pool!r}; write one of {', '.join(spec.pools)}"
    elif pool is None:
        yield ("pool",), "there is no pool without GPUs, so its pods would stay Pending; add one to pools"
    else:
        requests = container_requests(operator.resources)
        yield from ((("resources",), message) for message in spec.misfits(pool, requests))
    only = operator.only_namespace
    if only is not None and only not in spec.namespaces:
        yield (
            ("watchedNamespace",),
            f"{only!r} is not among the environment's namespaces, so no job could use the operator; add it there",
        )
    if operator.namespace in spec.namespaces:
        yield (
            ("namespace",),
            "is also one of the environment's namespaces, so both would declare it; choose another name",
        )
