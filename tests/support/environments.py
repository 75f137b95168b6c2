"""Changes an environment at one place and returns what is said about it."""

from typing import Any

from persia_infra.spec.errors import InputError
from persia_infra.stack import parse_environment

MISSING = object()
JOBS = "f.yaml: environment.jobs"
VOLUME = {"volume_type": "empty_dir", "name": "v", "mount_path": "/v", "spec": {}}


def problems(environment: dict[str, Any]) -> list[str]:
    try:
        parse_environment(environment, file="f.yaml")
    except InputError as error:
        return [str(problem) for problem in error.problems]
    return []


def put(data: Any, place: str, value: Any = MISSING) -> None:
    """Changes or removes the value at `a/b/0`; a key's own slash is written `~`."""
    *path, last = (int(key) if key.isdigit() else key.replace("~", "/") for key in place.split("/"))
    for key in path:
        data = data[key] if isinstance(key, int) else data.setdefault(key, {})
    if value is MISSING:
        del data[last]
    else:
        data[last] = value
