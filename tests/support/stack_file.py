"""Changes of a stack's description between one update and the next."""

from pathlib import Path
from typing import Any

import yaml


def edit(stack_file: Path, *path: str, value: Any) -> None:
    document = yaml.safe_load(stack_file.read_text())
    target = document["config"]["persia-infra:environment"]
    for key in path[:-1]:
        target = target[key]
    target[path[-1]] = value
    stack_file.write_text(yaml.safe_dump(document))
