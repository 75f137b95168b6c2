"""Reads the environment of a stack from its Pulumi configuration file, without Pulumi."""

import json
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Annotated, Any

from pydantic import AfterValidator, ConfigDict, ValidationError

from persia_infra.environment import EnvironmentSpec
from persia_infra.spec.base import Spec, matching
from persia_infra.spec.errors import InputError, Problem, problems_from
from persia_infra.spec.yaml_files import is_file, read_documents

CONFIG_KEY = "persia-infra:environment"
_VARIABLE_BYTES = 127 * 1024
_MISSING = "is missing; describe the environment under this key"
_PROJECT_FILE = "Pulumi.yaml"


def _inside(folder: str) -> str:
    path = PurePosixPath(folder)
    if path.is_absolute() or ".." in path.parts or "\0" in folder:
        raise ValueError("must be a folder inside the project; write its path from Pulumi.yaml, without '..'")
    return folder


class _ProjectFile(Spec):
    """The keys of a `Pulumi.yaml` that are read here; the rest concerns only Pulumi."""

    model_config = ConfigDict(extra="ignore")

    name: Annotated[str, matching(r"[A-Za-z0-9_.-]{1,100}", "project name; use letters, digits, '-' and '_'")]
    stack_config_dir: Annotated[str, AfterValidator(_inside)] | None = None


def load_stack(file: Path, *, shown: str | None = None) -> EnvironmentSpec:
    """Returns the environment that a `Pulumi.<stack>.yaml` describes.

    Args:
        file: The file.
        shown: The file's name in errors; its path when absent.

    Raises:
        InputError: The file cannot be read, or its environment is invalid.
    """
    data = _config(file, shown).get(CONFIG_KEY)
    size = _size_as_variable(data)
    if size > _VARIABLE_BYTES:
        message = (
            f"is too large: Pulumi passes it to the program in one environment variable, where it takes {size // 1024} "
            "KiB, and Linux allows 128; put the jobs' configuration files on a volume, or move jobs to another stack"
        )
        raise InputError([Problem(shown or str(file), "environment", message)])
    return parse_environment(data, file=shown or str(file))


def _size_as_variable(data: Any) -> int:  # noqa: ANN401
    """Returns the bytes that the value takes in PULUMI_CONFIG; 0 if JSON cannot hold it, which validation reports."""
    try:
        return len(json.dumps({CONFIG_KEY: json.dumps(data, separators=(",", ":"), default=str, skipkeys=True)}))
    except (ValueError, RecursionError):
        return 0


def describes_environment(file: Path, *, shown: str) -> bool:
    """Tells whether a stack has an environment under the key that this package reads; other projects may not.

    Raises:
        InputError: The file cannot be read, or is not the configuration of a stack.
    """
    documents = read_documents(file, shown=shown)
    if len(documents) > 1 or not all(isinstance(document, Mapping) for document in documents):
        raise InputError([Problem(shown, "", "must be one mapping, with the stack's values under config")])
    if not all(isinstance(document.get("config"), Mapping | None) for document in documents):
        raise InputError([Problem(shown, "config", "must be a mapping of keys to values")])
    return CONFIG_KEY in _config(file, shown)


def _config(file: Path, shown: str | None) -> Mapping[str, Any]:
    documents = read_documents(file, shown=shown)
    config = documents[0].get("config") if len(documents) == 1 and isinstance(documents[0], Mapping) else None
    return config if isinstance(config, Mapping) else {}


def parse_environment(data: Any, *, file: str = "") -> EnvironmentSpec:  # noqa: ANN401
    """Returns the environment that a configuration value describes.

    Raises:
        InputError: The environment is invalid; with one problem per error.
    """
    if data is None:
        raise InputError([Problem(file, f"config.{CONFIG_KEY}", _MISSING)])
    try:
        return EnvironmentSpec.model_validate(data)
    except ValidationError as error:
        problems = problems_from(error, EnvironmentSpec, data, file=file, prefix=("environment",))
        raise InputError(problems) from None


def find_project(start: Path) -> Path:
    """Returns the nearest folder with a `Pulumi.yaml`, from `start` upwards.

    Raises:
        InputError: There is none.
    """
    for folder in (start.resolve(), *start.resolve().parents):
        if is_file(folder / _PROJECT_FILE):
            return folder
    raise InputError([Problem(_PROJECT_FILE, "", "not found here or in any folder above; run this inside the project")])


def find_stack(name: str, project_dir: Path) -> Path:
    """Returns the configuration file of a stack.

    Raises:
        InputError: `Pulumi.yaml` is invalid, or there is no stack of that name; the message lists the stacks.
    """
    settings = _read_project(project_dir)
    folder = project_dir / (settings.stack_config_dir or ".")
    file = folder / f"Pulumi.{name}.yaml"
    if not is_file(file):
        stacks = sorted(path.name.split(".")[1] for path in folder.glob("Pulumi.*.yaml"))
        raise InputError(
            [
                Problem(
                    shown_path(file, project_dir),
                    "",
                    f"there is no stack {name!r}; "
                    + (f"known: {', '.join(stacks)}" if stacks else "the project has none yet"),
                )
            ]
        )
    return file


def _read_project(project_dir: Path) -> _ProjectFile:
    documents = read_documents(project_dir / _PROJECT_FILE, shown=_PROJECT_FILE)
    if len(documents) != 1 or not isinstance(documents[0], Mapping):
        raise InputError([Problem(_PROJECT_FILE, "", "must be one mapping, with the project's name and runtime")])
    try:
        return _ProjectFile.model_validate(documents[0])
    except ValidationError as error:
        raise InputError(problems_from(error, _ProjectFile, documents[0], file=_PROJECT_FILE)) from None


def shown_path(file: Path, project_dir: Path) -> str:
    """Returns a path as errors show it: relative to the project's folder if it is inside."""
    return str(file.relative_to(project_dir)) if file.is_relative_to(project_dir) else str(file)
