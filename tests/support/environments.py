"""Changes an environment at one place and returns what is said about it."""

from collections.abc import Iterable
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


def assert_refused(lines: Iterable[object], expected: str | tuple[str, ...], *, prefix: str = "") -> None:
    """Exactly the expected problems are reported, in this order; of each line only the beginning has to be given."""
    reported = [str(line) for line in lines]
    beginnings = [prefix + each for each in ((expected,) if isinstance(expected, str) else expected)]
    matches = [line.startswith(beginning) for line, beginning in zip(reported, beginnings, strict=False)]
    assert len(reported) == len(beginnings), f"{len(beginnings)} expected, but reported:\n" + "\n".join(reported)
    assert all(matches), "expected:\n" + "\n".join(beginnings) + "\nreported:\n" + "\n".join(reported)


def put(data: Any, place: str, value: Any = MISSING) -> None:
    """Changes or removes the value at `a/b/0`; a key's own slash is written `~`."""
    *path, last = (int(key) if key.isdigit() else key.replace("~", "/") for key in place.split("/"))
    for key in path:
        data = data[key] if isinstance(key, int) else data.setdefault(key, {})
    if value is MISSING:
        del data[last]
    else:
        data[last] = value
