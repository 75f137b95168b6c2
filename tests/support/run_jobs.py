"""Reading a job of the environment with one of each kind."""

from typing import Any

from persia_infra.jobs import Job
from persia_infra.jobs.job import Placements
from persia_infra.stack import parse_environment


def read(environment: dict[str, Any], name: str, **changes: Any) -> Any:
    environment["jobs"][name].update(changes)
    return parse_environment(environment).jobs[name]


def places(job: Job) -> list[str]:
    """Where it says something about itself."""
    return [".".join(map(str, place)) for place, _ in job.notes()]


def object_spec(job: Job, name: str = "job", placements: Placements | None = None) -> dict[str, Any]:
    """The `spec` of the job's own object, with its final pods."""
    group = job.objects(name, "training", placements or {})
    *_, (_, own) = group.named_objects("")
    return own.body["spec"]


def without_added_labels(spec: Any) -> Any:
    """A `spec` without the recommended labels that this library adds to pods, each of which is a label of its own."""
    if isinstance(spec, list):
        return [without_added_labels(each) for each in spec]
    if not isinstance(spec, dict):
        return spec
    plain = {key: without_added_labels(value) for key, value in spec.items()}
    if "template" in plain:
        described = plain["template"]["metadata"]
        kept = {key: value for key, value in described["labels"].items() if not key.startswith("app.kubernetes.io/")}
        assert len(described["labels"]) == len(kept) + 5
        described = {**described, "labels": kept} if kept else {k: v for k, v in described.items() if k != "labels"}
        plain["template"] = {**({"metadata": described} if described else {}), "spec": plain["template"]["spec"]}
    return plain
