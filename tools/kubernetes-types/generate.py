"""Writes persia_infra/kube/types from the OpenAPI documents of the Kubernetes that tools/kubernetes pins.

Names and shapes come from the published OpenAPI documents. Those list no enumerations, so the values that a
field can have are read from the Go source that the documents are made from. Descriptions are not copied.
"""

import json
import keyword
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic.alias_generators import to_camel

REPOSITORY = Path(__file__).parents[2]
OUTPUT = REPOSITORY / "persia_infra" / "kube" / "types"
MODULE = "k8s.io/kubernetes"

_CORE, _META = "io.k8s.api.core.v1.", "io.k8s.apimachinery.pkg.apis.meta.v1."
_ADMISSION, _RBAC = "io.k8s.api.admissionregistration.v1.", "io.k8s.api.rbac.v1."
ROOTS: Mapping[str, tuple[str, ...]] = {
    "meta": (f"{_META}ObjectMeta", f"{_META}LabelSelector"),
    "pods": (f"{_CORE}PodTemplateSpec",),
    "storage": (f"{_CORE}PersistentVolume", f"{_CORE}PersistentVolumeClaim", "io.k8s.api.storage.v1.StorageClass"),
    "core": tuple(
        _CORE + kind
        for kind in ("ConfigMap", "Secret", "Service", "ServiceAccount", "Namespace", "ResourceQuota", "LimitRange")
    ),
    "apps": tuple(f"io.k8s.api.apps.v1.{kind}" for kind in ("StatefulSet", "Deployment", "DaemonSet")),
    "batch": ("io.k8s.api.batch.v1.Job",),
    "policy": ("io.k8s.api.policy.v1.PodDisruptionBudget",),
    "networking": ("io.k8s.api.networking.v1.NetworkPolicy",),
    "rbac": tuple(_RBAC + kind for kind in ("Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding")),
    "scheduling": ("io.k8s.api.scheduling.v1.PriorityClass",),
    "admission": (f"{_ADMISSION}MutatingWebhookConfiguration", f"{_ADMISSION}ValidatingWebhookConfiguration"),
}
"""The kinds of each module. A type that several modules use is in the first of them."""

_EMPTY_WHEN_ABSENT = frozenset(("securityContext",))
"""Objects that Kubernetes fills in itself, so that readers need not ask whether they are there."""

_RULES = {"pods": ("affinity", "pods", "pod_templates"), "storage": ("storage",)}
"""Modules of `kube` with rules for the types of a module."""

_OWN_TYPES = {
    "io.k8s.apimachinery.pkg.api.resource.Quantity": "Quantity",
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString": "Integer | str",
    f"{_META}Time": "Time",
    f"{_META}MicroTime": "Time",
    f"{_META}FieldsV1": "dict[str, Any]",
}
_PLAIN_TYPES = {"string": "str", "integer": "Integer", "boolean": "Boolean", "number": "float"}
_HEADER = '''"""Types of the Kubernetes API: {title}.

Generated from the OpenAPI documents of Kubernetes {version} by `make types`. Do not edit.
"""

# ruff: noqa: RUF012
'''

Schema = Mapping[str, Any]


@dataclass(frozen=True)
class Source:
    """What one version of Kubernetes publishes about its API."""

    version: str
    schemas: Mapping[str, Schema]
    values: Mapping[tuple[str, str], tuple[str, ...]]
    """The values that a property can have, by type and property."""


def download(modules: Path) -> Path:
    """Returns the folder of the pinned module's source, fetched into `modules`."""
    environment = os.environ | {"GOMODCACHE": str(modules), "GOFLAGS": "-mod=readonly -modcacherw", "GOWORK": "off"}
    done = subprocess.run(
        ["go", "mod", "download", "-json", MODULE],
        cwd=REPOSITORY / "tools" / "kubernetes",
        env=environment,
        check=False,
        capture_output=True,
        text=True,
    )
    if done.returncode != 0:
        sys.exit(f"go mod download {MODULE} failed, so no types were written:\n{done.stdout}{done.stderr}")
    return Path(json.loads(done.stdout)["Dir"])


def read_source(folder: Path) -> Source:
    """Reads the OpenAPI documents of all groups, and the enumerations of the Go source."""
    schemas: dict[str, Schema] = {}
    for document in sorted((folder / "api/openapi-spec/v3").glob("*_openapi.json")):
        schemas |= json.loads(document.read_text()).get("components", {}).get("schemas", {})
    go = (folder / "pkg/generated/openapi/zz_generated.openapi.go").read_text()
    return Source(folder.name.partition("@v")[2], schemas, dict(_enumerations(go)))


def _enumerations(go: str) -> Iterator[tuple[tuple[str, str], tuple[str, ...]]]:
    prefixes = (("k8sio_api_", "io.k8s.api."), ("pkg_apis_meta_v1_", _META))
    for function in re.finditer(r"^func schema_(\w+)\(.*?^}", go, re.MULTILINE | re.DOTALL):
        for written, meant in prefixes:
            if function[1].startswith(written):
                name = meant + function[1].removeprefix(written).replace("_", ".")
                for entry in re.split(r'^\t{5}(?=")', function[0], flags=re.MULTILINE)[1:]:
                    if values := re.search(r"Enum: +\[\]interface\{\}\{(.*)\}", entry):
                        yield (name, entry.split('"')[1]), tuple(json.loads(f"[{values[1]}]"))


class Generator:
    """Turns one source into Python modules."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._module_of: dict[str, str] = {}
        for module, roots in ROOTS.items():
            for root in roots:
                for name in self._closure(root):
                    home = "meta" if name.startswith(_META) else module
                    self._module_of.setdefault(name, home)

    def modules(self) -> Iterator[tuple[str, str]]:
        """Yields the name and the text of each module."""
        for module in ROOTS:
            names = [name for name, home in self._module_of.items() if home == module]
            yield module, self._module(module, names)

    def _closure(self, name: str) -> Iterator[str]:
        """Yields everything that a type refers to, and the type itself last."""
        for reference in sorted(_references(self._source.schemas[name])):
            if reference not in _OWN_TYPES:
                yield from self._closure(reference)
        yield name

    def _module(self, module: str, names: list[str]) -> str:
        classes = [self._class(name) for name in names]
        code = "\n\n\n".join(classes)
        imports = [
            ("typing", _used(code, ("Any", "Literal"))),
            ("pydantic", _used(code, ("Field",))),
            ("persia_infra.kube.types.base", _used(code, ("Boolean", "Integer", "KubeKind", "KubeType", "Time"))),
        ]
        others: dict[str, set[str]] = {}
        for name in names:
            for reference in _references(self._source.schemas[name]) - set(_OWN_TYPES):
                if (home := self._module_of[reference]) != module:
                    others.setdefault(home, set()).add(_short(reference))
        imports += [(f"persia_infra.kube.types.{home}", sorted(used)) for home, used in others.items()]
        imports.append(("persia_infra.spec.base", _used(code, ("Quantity",))))
        lines = [f"from {home} import {', '.join(used)}" for home, used in imports if used]
        title = "metadata" if module == "meta" else "pods" if module == "pods" else f"the group {module}"
        header = _HEADER.format(title=title, version=self._source.version)
        rules = [f"import persia_infra.kube.{rule}  # noqa: E402, F401" for rule in _RULES.get(module, ())]
        if rules:
            rules = ["", "# Imported last, because these rules import this module.", *rules]
        return "\n".join([header, *lines, "", "", code, *rules, ""])

    def _class(self, name: str) -> str:
        schema = self._source.schemas[name]
        kinds = schema.get("x-kubernetes-group-version-kind") or []
        required = set(schema.get("required", ()))
        lines = [f"class {_short(name)}({'KubeKind' if kinds else 'KubeType'}):"]
        for key, value in schema.get("properties", {}).items():
            if kinds and key in ("apiVersion", "kind"):
                group = "/".join(filter(None, (kinds[0]["group"], kinds[0]["version"])))
                text = group if key == "apiVersion" else kinds[0]["kind"]
                lines.append(f'    {_python_name(key)}: Literal["{text}"] = "{text}"')
            else:
                lines.append(f"    {self._field(name, key, value, required=key in required)}")
        return "\n".join(lines if len(lines) > 1 else [*lines, "    pass"])

    def _field(self, owner: str, key: str, schema: Schema, *, required: bool) -> str:
        annotation = self._annotation(schema, self._source.values.get((owner, key), ()))
        name = _python_name(key)
        options = {} if to_camel(name) == key else {"alias": f'"{key}"'}
        if not required:
            options = self._default(key, schema) | options
        if options.get("default") == "None":
            annotation = f"{annotation} | None"
        if options.keys() == {"default"}:
            return f"{name}: {annotation} = {options['default']}"
        written = ", ".join(f"{option}={value}" for option, value in options.items())
        return f"{name}: {annotation}{f' = Field({written})' if written else ''}"

    def _default(self, key: str, schema: Schema) -> dict[str, str]:
        """What stands in for a missing key; nothing for an object that is always there but cannot be empty."""
        reference = _reference(schema)
        always_there = schema.get("default") == {} or key in _EMPTY_WHEN_ABSENT
        if reference and reference not in _OWN_TYPES and always_there:
            if key != "status" and not self._can_be_empty(reference):
                return {}
            if key not in ("spec", "status"):
                return {"default_factory": _short(reference)}
        return {"default": {"array": "[]", "object": "{}"}.get(schema.get("type", ""), "None")}

    def _can_be_empty(self, name: str) -> bool:
        """Whether Kubernetes takes an object without a single key where it expects this type."""
        schema = self._source.schemas[name]
        inner = ((key, _reference(value), value) for key, value in schema.get("properties", {}).items())
        return not schema.get("required") and all(
            self._can_be_empty(reference)
            for _, reference, value in inner
            if reference and reference not in _OWN_TYPES and value.get("default") == {}
        )

    def _annotation(self, schema: Schema, values: tuple[str, ...]) -> str:
        if reference := _reference(schema):
            return _OWN_TYPES.get(reference) or _short(reference)
        if schema.get("type") == "array":
            return f"list[{self._annotation(schema['items'], values)}]"
        if schema.get("type") == "object":
            inner = schema.get("additionalProperties")
            return f"dict[str, {self._annotation(inner, values) if inner else 'Any'}]"
        if values:
            return f"Literal[{', '.join(json.dumps(value) for value in values)}]"
        return _PLAIN_TYPES[schema["type"]]


def _reference(schema: Schema) -> str | None:
    target = schema.get("$ref") or next((part.get("$ref") for part in schema.get("allOf", ())), None)
    return target and target.rpartition("/")[2]


def _references(schema: Schema) -> set[str]:
    parts = [*schema.get("properties", {}).values(), schema.get("items"), schema.get("additionalProperties")]
    inner = (_references(part) for part in parts if isinstance(part, Mapping))
    return {name for name in [_reference(schema)] if name}.union(*inner)


def _short(name: str) -> str:
    return name.rpartition(".")[2]


def _used(code: str, names: tuple[str, ...]) -> list[str]:
    return [name for name in names if re.search(rf"\b{name}\b", code)]


def _python_name(key: str) -> str:
    words = re.findall(r"[A-Z]{2,}s(?![a-z])|[A-Z]+(?![a-z])|[A-Z]?[a-z0-9]+", key)
    name = "_".join(words).lower()
    return f"{name}_" if keyword.iskeyword(name) else name


def write(folder: Path, output: Path) -> None:
    """Writes the modules for the Kubernetes source in `folder`, formatted like the rest of the project."""
    output.mkdir(parents=True, exist_ok=True)
    files = []
    for module, text in Generator(read_source(folder)).modules():
        files.append(output / f"{module}.py")
        files[-1].write_text(text)
    ruff = Path(sys.executable).with_name("ruff")
    for arguments in (["check", "--quiet", "--fix", "--select", "I"], ["format", "--quiet"]):
        subprocess.run([ruff, *arguments, "--config", REPOSITORY / "pyproject.toml", *files], check=True)


def main() -> None:
    with tempfile.TemporaryDirectory() as modules:
        write(download(Path(modules)), OUTPUT)


if __name__ == "__main__":
    main()
