"""A small project whose only stack deploys operators, for a test and a benchmark that rehearse it."""

import json
import shutil
from pathlib import Path
from typing import Any

from tests.support.project import PROJECT

STACK = "operators"


def write_project(folder: Path, operators: dict[str, Any], **more: Any) -> None:
    """Fills the folder; `more` are further keys of the environment."""
    environment = {
        "project": "persia-example",
        "region": "us-central1",
        "cluster": {
            "zones": ["us-central1-a"],
            "authorizedNetworks": [{"cidr": "203.0.113.0/24"}],
            "deletionProtection": False,
        },
        "pools": {"cpu": {"machineType": "n2-standard-8", "count": 2}},
        "operators": operators,
        **more,
    }
    (folder / "stacks").mkdir()
    for file in ("Pulumi.yaml", "stacks/__main__.py"):
        shutil.copy(PROJECT / file, folder / file)
    description = json.dumps({"config": {"persia-infra:environment": environment}})
    (folder / "stacks" / f"Pulumi.{STACK}.yaml").write_text(description)
