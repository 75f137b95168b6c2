"""The schemas of the kinds as their own projects publish them, taken from the pinned sources when a test asks."""

import json
import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import yaml

from persia_infra.kube.programs import GoSource
from persia_infra.operators import mpi, nats, paddle
from persia_infra.operators.volcano import spec as volcano
from persia_infra.rehearsal.toolchain import Toolchain, tools_folder
from tests.support.schema_comparison import Schema

_DEFINITIONS = (
    (mpi.SOURCE, "manifests/base"),
    (paddle.SOURCE, "config/crd/bases"),
    (volcano.SOURCES["scheduler"], "config/crd/volcano/bases"),
    (volcano.SOURCES["scheduler"], "config/crd/jobflow/bases"),
)
"""Modules, and where each keeps its definitions."""
_NATS_TYPES = "pkg/apis/nats/v1alpha2/cluster.go"
_GO_TYPES: dict[str, Schema] = {
    "string": {"type": "string"},
    "bool": {"type": "boolean"},
    "int": {"type": "integer", "format": "int64"},
    "int64": {"type": "integer", "format": "int64"},
    "float64": {"type": "number"},
    "map[string]string": {"type": "object", "additionalProperties": {"type": "string"}},
}
_FROM_KUBERNETES: Schema = {"x-kubernetes-preserve-unknown-fields": True}


def definitions(modules: Path, persia: Toolchain) -> dict[str, Schema]:
    """The `spec` of each CustomResourceDefinition, by its name.

    PERSIA is no Go module: its operator's wheel has a program that writes its definition.
    """
    files = [file for source, folder in _DEFINITIONS for file in (module(source, modules) / folder).glob("*_*.yaml")]
    written = modules / "persia.yaml"
    subprocess.run([persia["persia-gencrd"], "--output", written], check=True, capture_output=True)
    found = (document for file in [*files, written] for document in _documents(file))
    return {one["metadata"]["name"]: one["spec"] for one in found}


def nats_spec(modules: Path) -> Schema:
    """What the NATS operator reads of a cluster; its own definition has no schema, its Go types say it."""
    source = (module(nats.SOURCE, modules) / _NATS_TYPES).read_text()
    structs = dict(re.findall(r"^type (\w+) struct \{\n(.*?)^\}", source, re.MULTILINE | re.DOTALL))
    return _of_struct("ClusterSpec", structs)


def module(source: GoSource, modules: Path) -> Path:
    """One module's files, without those of what it depends on, checked against the pins."""
    done = subprocess.run(
        ["go", "mod", "download", "-json", source.module],
        cwd=tools_folder() / source.folder,
        env=os.environ | {"GOMODCACHE": str(modules), "GOFLAGS": "-mod=readonly -modcacherw", "GOWORK": "off"},
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, f"{done.stdout}{done.stderr}"
    return Path(json.loads(done.stdout)["Dir"])


def _documents(file: Path) -> Iterator[Schema]:
    with file.open() as text:
        yield from filter(None, yaml.load_all(text, Loader=yaml.CSafeLoader))


def _of_struct(name: str, structs: dict[str, str]) -> Schema:
    fields = re.findall(r'^\s+\w+\s+(\S+)\s+`json:"(\w+)', structs[name], re.MULTILINE)
    return {"type": "object", "properties": {key: _of_type(written, structs) for written, key in fields}}


def _of_type(written: str, structs: dict[str, str]) -> Schema:
    if written.startswith("[]"):
        return {"type": "array", "items": _of_type(written[2:], structs)}
    plain = written.removeprefix("*")
    if plain.startswith("v1."):
        return _FROM_KUBERNETES
    return _GO_TYPES.get(plain) or _of_struct(plain, structs)
