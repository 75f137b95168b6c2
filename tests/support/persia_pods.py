"""What the objects of the PERSIA job `ads` give to the pods of its roles."""

from typing import Any

from tests.support import kube_objects
from tests.support.kube_objects import Objects


def template(job: Objects, role: str) -> dict[str, Any]:
    """The pod template of a role, which is named as in its pods: `embedding-ps`."""
    return job.body("StatefulSet", f"ads-{role}")["spec"]["template"]


def pod(job: Objects, role: str) -> dict[str, Any]:
    """The pod spec of a role."""
    return template(job, role)["spec"]


def container(job: Objects, role: str) -> dict[str, Any]:
    """The only container of a role's pods."""
    return kube_objects.container(pod(job, role))


def env(job: Objects, role: str) -> dict[str, Any]:
    """The variables of a role's container: their values, or where those come from."""
    return {entry["name"]: entry.get("value", entry.get("valueFrom")) for entry in container(job, role)["env"]}
