"""The objects of one PERSIA job, as values."""

from collections.abc import Callable
from typing import Any

import pytest

from persia_infra.stack import parse_environment
from tests.support.kube_objects import Objects


@pytest.fixture
def ads(description: dict[str, Any]) -> Callable[..., Objects]:
    """Returns the objects of the PERSIA job of `description`, with changes of it."""

    def build(**changes: Any) -> Objects:
        job = {**description["jobs"]["ads"], **changes}
        operators = {"persia": {}, "nats": {}, "volcano": {}}
        spec = parse_environment({**description, "operators": operators, "jobs": {"ads": job}})
        return Objects(spec.job_objects("ads"))

    return build
