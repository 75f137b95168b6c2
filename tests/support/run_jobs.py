"""Reading a job of the environment with one of each kind."""

from typing import Any

from persia_infra.jobs import RunJob
from persia_infra.stack import parse_environment


def read(environment: dict[str, Any], name: str, **changes: Any) -> Any:
    environment["jobs"][name].update(changes)
    return parse_environment(environment).jobs[name]


def places(job: RunJob) -> list[str]:
    """Where it says something about itself."""
    return [".".join(map(str, place)) for place, _ in job.notes()]
