"""Reads the StatefulSets of PERSIA's first Google Cloud recipe, with the role names of 2021, as one PersiaJob.

Each of them runs a launch script on shared storage, which is not in the manifest. Here the roles are started by
persia-launcher instead, with the paths from the containers' variables or, if these are missing, the recipe's own.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any

from pydantic import ValidationError

from persia_infra.manifests.stateful_set import CONTAINER, KIND, POD, StatefulSet
from persia_infra.spec.base import Finding, Place
from persia_infra.spec.errors import InputError, Problem, document_place, dotted, findings_from, nearest

_ROLE_WORDS = {
    "trainer": "nnWorker",
    "nn-worker": "nnWorker",
    "data-compose": "dataloader",
    "datacompose": "dataloader",
    "compose": "dataloader",
    "data-loader": "dataloader",
    "dataloader": "dataloader",
    "middleware": "embeddingWorker",
    "embedding-worker": "embeddingWorker",
    "emb-server": "embeddingParameterServer",
    "embserver": "embeddingParameterServer",
    "server": "embeddingParameterServer",
    "embedding-parameter-server": "embeddingParameterServer",
}
_RECIPE_PATHS = {
    "PERSIA_GLOBAL_CONFIG": "/workspace/persia-exp/global_config.yml",
    "PERSIA_EMBEDDING_CONFIG": "/workspace/persia-exp/criteo_embedding_config.yml",
    "PERSIA_NN_WORKER_ENTRY": "/workspace/persia-exp/train.py",
    "PERSIA_DATALOADER_ENTRY": "/workspace/persia-exp/data_compose.py",
}
_READ_BY = {
    "PERSIA_GLOBAL_CONFIG": ("embeddingWorker", "embeddingParameterServer"),
    "PERSIA_EMBEDDING_CONFIG": ("embeddingWorker", "embeddingParameterServer"),
    "PERSIA_NN_WORKER_ENTRY": ("nnWorker",),
    "PERSIA_DATALOADER_ENTRY": ("dataloader",),
}
_FROM_CONTAINER = {"resources", "image", "volume_mounts"}
_FROM_POD = {
    "node_selector",
    "tolerations",
    "affinity",
    "service_account_name",
    "priority_class_name",
    "security_context",
}
_SET_FOR_EACH_POD = frozenset(("REPLICA_SIZE", "REPLICA_INDEX", "NPROC_PER_NODE"))
_NATS = ("PERSIA_NATS_IP", "PERSIA_NATS_URL")


@dataclass
class Recipe:
    """The PersiaJob that the documents of one file form."""

    spec: dict[str, Any] = field(
        default_factory=lambda: {"kind": "PersiaJob", "restartPolicy": "Always", "persiaEnv": {}}
    )
    namespace: str | None = None
    notes: list[Finding] = field(default_factory=list)
    nats_document: int | None = None
    """The index of the NatsCluster that the roles use, which becomes the job's own."""
    origins: dict[Place, Place] = field(default_factory=dict)
    """The place of a value in the file, by its place in the job."""


def read_recipe(documents: Sequence[Any], *, file: str = "") -> Recipe:
    """Combines the StatefulSets among `documents` and the NatsCluster that they use.

    Raises:
        InputError: A StatefulSet is not a role of PERSIA, or has fields that a PersiaJob cannot represent.
    """
    recipe = Recipe()
    findings: list[Finding] = []
    notes: dict[Finding, list[int]] = {}
    for index, document in enumerate(documents):
        if not isinstance(document, Mapping) or document.get("kind") != KIND:
            continue
        at = document_place(documents, index)
        try:
            described = StatefulSet.model_validate(document)
        except ValidationError as error:
            findings += [((*at, *place), message) for place, message in findings_from(error, StatefulSet, document)]
            continue
        reader = _Role(described, at, recipe)
        findings += [((*at, *place), message) for place, message in reader.read()]
        for note in dict.fromkeys(reader.notes):
            notes.setdefault(note, []).append(index)
    findings += _take_nats(recipe, documents)
    if findings:
        raise InputError([Problem(file, dotted(place), message) for place, message in findings])
    in_order = sorted(notes.items(), key=lambda note: len(note[1]))
    recipe.notes[:0] = [((*document_place(documents, *where), *place), text) for (place, text), where in in_order]
    _fill_in_paths(recipe)
    return recipe


def _fill_in_paths(recipe: Recipe) -> None:
    paths = recipe.spec["persiaEnv"]
    unmounted: dict[str, list[str]] = {}
    for name, usual in _RECIPE_PATHS.items():
        readers = [role for role in _READ_BY[name] if role in recipe.spec]
        if not readers and name in ("PERSIA_NN_WORKER_ENTRY", "PERSIA_DATALOADER_ENTRY"):
            continue
        if name not in paths:
            paths[name] = usual
            recipe.notes.append(((), f"{name} is set in the launch script, not in the manifest; {usual} is assumed"))
        for role in readers:
            if not _is_mounted(paths[name], recipe.spec[role]):
                unmounted.setdefault(str(PurePosixPath(paths[name]).parent), []).append(role)
    for folder, roles in unmounted.items():
        whose = ", ".join(dict.fromkeys(roles))
        note = f"no volume is mounted at {folder} in {whose}; mount one unless the image contains the files"
        recipe.notes.append(((), note))


def _is_mounted(path: str, role: Mapping[str, Any]) -> bool:
    return any(PurePosixPath(path).is_relative_to(mount["mountPath"]) for mount in role.get("volumeMounts", ()))


def _take_nats(recipe: Recipe, documents: Sequence[Any]) -> Iterator[Finding]:
    """Makes the NatsCluster that the roles' variables name the job's own, if it is in the same file."""
    url = next((entry["value"] for entry in recipe.spec.get("env", [])), "")
    host = url.removeprefix("nats://").partition(":")[0].partition(".")[0]
    if not host:
        return
    for index, document in enumerate(documents):
        if not isinstance(document, Mapping) or document.get("kind") != "NatsCluster":
            continue
        metadata, spec = document.get("metadata"), document.get("spec")
        if not isinstance(metadata, Mapping) or not isinstance(spec, Mapping) or metadata.get("name") != host:
            continue
        at = document_place(documents, index)
        namespace = metadata.get("namespace") or recipe.namespace
        if recipe.namespace and namespace != recipe.namespace:
            yield (
                (*at, "metadata", "namespace"),
                "differs from the namespace of the roles, but a job and its NATS share one; make them equal",
            )
        recipe.namespace = namespace
        recipe.nats_document = index
        recipe.spec["nats"] = dict(spec)
        recipe.origins["nats",] = (*at, "spec")
        del recipe.spec["env"], recipe.origins["env",]
        recipe.notes.append((at, f"the NatsCluster {host} is used by these roles and becomes the job's own NATS"))
        return


class _Role:
    def __init__(self, described: StatefulSet, place: Place, recipe: Recipe) -> None:
        self._described = described
        self._place = place
        self._recipe = recipe
        self.notes: list[Finding] = []

    def read(self) -> Iterator[Finding]:
        """Adds the role to the recipe, and yields what a PersiaJob cannot represent."""
        described, spec = self._described, self._recipe.spec
        name = described.metadata.name
        yield from described.findings()
        role = next((_ROLE_WORDS[word] for word in (*reversed(described.words), name) if word in _ROLE_WORDS), None)
        if role is None:
            near = nearest(name, ["trainer", "data-compose", "middleware", "emb-server"])
            yield ("metadata", "name"), f"does not tell which role of PERSIA this is; {near}"
            return
        if role in spec:
            yield ("metadata", "name"), f"is a second StatefulSet of the role {role}; remove one"
            return
        self.notes.append((("metadata", "name"), f"the StatefulSet {name} was read as the role {role}"))
        self.notes += described.notes()
        spec[role] = {
            "replicas": described.spec.replicas,
            **described.container.model_dump(include=_FROM_CONTAINER, by_alias=True, exclude_unset=True),
            **described.pod.model_dump(include=_FROM_POD, by_alias=True, exclude_unset=True),
        }
        self._came_from((role,), CONTAINER)
        self._came_from((role, "replicas"), ("spec", "replicas"))
        for key in described.pod.model_dump(include=_FROM_POD, by_alias=True):
            self._came_from((role, key), (*POD, key))
        yield from self._read_variables(role)
        yield from self._share_namespace()
        yield from self._share_pull_policy()
        yield from self._share_volumes()

    def _came_from(self, place: Place, origin: Place) -> None:
        self._recipe.origins.setdefault(place, (*self._place, *origin))

    def _read_variables(self, role: str) -> Iterator[Finding]:
        described = self._recipe.spec[role]
        kept = []
        for index, variable in enumerate(self._described.container.env):
            name, value, place = variable.name, variable.value, (*CONTAINER, "env", index)
            if name == "NPROC_PER_NODE" and role == "nnWorker":
                described["nprocPerNode"] = int(value) if value and value.isdecimal() else value
                self._came_from((role, "nprocPerNode"), (*place, "value"))
            elif name == "REPLICA_SIZE" and value != str(described["replicas"]):
                yield (
                    (*place, "value"),
                    f"is {value} but replicas is {described['replicas']}, so the role would wait for pods that do not "
                    "exist, or ignore some; make them equal",
                )
            elif name in _RECIPE_PATHS and value:
                if self._recipe.spec["persiaEnv"].setdefault(name, value) != value:
                    yield (
                        (*place, "value"),
                        f"{name} has a different value in another role, but a job has only one; make them equal",
                    )
                self._came_from(("persiaEnv", name), (*place, "value"))
            elif name in _NATS and value:
                yield from self._share_nats(name, value, place)
            elif name not in _SET_FOR_EACH_POD:
                self._came_from((role, "env", len(kept)), place)
                kept.append(variable.model_dump(by_alias=True, exclude_unset=True))
            if name == "PERSIA_PORT":
                note = "PERSIA_PORT has no effect: persia-launcher starts the role on PERSIA's own port"
                self.notes.append(((*CONTAINER, "env"), note))
        if role == "nnWorker" and "nprocPerNode" not in described:
            yield (
                (*CONTAINER, "env"),
                "lacks NPROC_PER_NODE, the number of processes that train on each node; add it",
            )
        if kept:
            described["env"] = kept

    def _share_nats(self, name: str, url: str, place: Place) -> Iterator[Finding]:
        if name == "PERSIA_NATS_IP":
            note = "PERSIA has not read PERSIA_NATS_IP since December 2021; it was read as PERSIA_NATS_URL"
            self.notes.append(((*CONTAINER, "env"), note))
        shared = self._recipe.spec.setdefault("env", [{"name": "PERSIA_NATS_URL", "value": url}])
        self._came_from(("env",), (*place, "value"))
        if shared[0]["value"] != url:
            message = "differs from the NATS of the other roles, so they would not find each other; make them equal"
            yield (*place, "value"), message

    def _share_namespace(self) -> Iterator[Finding]:
        namespace = self._described.metadata.namespace
        if namespace and self._recipe.namespace not in (None, namespace):
            yield (
                ("metadata", "namespace"),
                "differs from the other roles', but a job has only one namespace; make them equal",
            )
        self._recipe.namespace = self._recipe.namespace or namespace

    def _share_pull_policy(self) -> Iterator[Finding]:
        place = (*CONTAINER, "imagePullPolicy")
        policy = self._described.container.image_pull_policy
        if policy and self._recipe.spec.setdefault("imagePullPolicy", policy) != policy:
            yield place, "differs from the other roles', but a PersiaJob has only one; make them equal"
        self._came_from(("imagePullPolicy",), place)

    def _share_volumes(self) -> Iterator[Finding]:
        shared = self._recipe.spec.setdefault("volumes", [])
        for index, volume in enumerate(self._described.pod.volumes):
            dumped = volume.model_dump(by_alias=True, exclude_unset=True)
            same = [other for other in shared if other["name"] == volume.name]
            if not same:
                self._came_from(("volumes", len(shared)), (*POD, "volumes", index))
                shared.append(dumped)
            elif same[0] != dumped:
                place = (*POD, "volumes", index)
                yield place, "differs from another role's volume of the same name; rename one of them"
