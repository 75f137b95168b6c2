"""StatefulSets of PERSIA's first Google Cloud recipe, with the role names of 2021, read as one PersiaJob.

Each of them runs a launch script that is on shared storage and not in the manifest. Here the roles are started by
persia-launcher instead, with the paths that the containers' variables name or, failing that, the recipe's own.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from persia_infra.errors import InputError, Problem, dotted, nearest
from persia_infra.spec import Finding, Place

API_VERSION, KIND = "apps/v1", "StatefulSet"

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
_NEEDED_BY = {"PERSIA_NN_WORKER_ENTRY": "nnWorker", "PERSIA_DATALOADER_ENTRY": "dataloader"}
_FROM_CONTAINER = ("resources", "image", "volumeMounts")
_FROM_POD = ("nodeSelector", "tolerations", "affinity", "serviceAccountName", "priorityClassName", "securityContext")
_LAUNCHING = frozenset(("name", "args", "command", "env", "imagePullPolicy", "ports", *_FROM_CONTAINER))
_POD_KEYS = frozenset(("containers", "volumes", "restartPolicy", *_FROM_POD))
_SET_FOR_EACH_POD = frozenset(("REPLICA_SIZE", "REPLICA_INDEX", "NPROC_PER_NODE"))


@dataclass
class Recipe:
    """The PersiaJob that the documents of one file add up to."""

    spec: dict[str, Any]
    namespace: str | None = None
    notes: list[Finding] = field(default_factory=list)
    nats_document: int | None = None
    """The NatsCluster that the roles use, which becomes the job's own."""


def read_recipe(documents: Sequence[Any], *, file: str = "") -> Recipe:
    """Puts the StatefulSets among `documents`, and the NatsCluster they use, together.

    Raises:
        InputError: A StatefulSet is no role of PERSIA, or says what cannot be kept.
    """
    problems: list[Problem] = []
    recipe = Recipe({"kind": "PersiaJob", "persiaEnv": {}})
    variables: dict[str, str] = {}
    for index, document in enumerate(documents):
        if isinstance(document, Mapping) and document.get("kind") == KIND:
            place: Place = (f"documents[{index}]",) if len(documents) > 1 else ()
            reader = _StatefulSet(document, place, recipe, variables)
            problems += [Problem(file, dotted(at), said) for at, said in reader.read()]
    if problems:
        raise InputError(problems)
    _fill_in_paths(recipe, variables)
    _take_nats(recipe, documents)
    return recipe


def _fill_in_paths(recipe: Recipe, variables: Mapping[str, str]) -> None:
    for name, usual in _RECIPE_PATHS.items():
        if _NEEDED_BY.get(name, "") not in ("", *recipe.spec):
            continue
        recipe.spec["persiaEnv"][name] = variables.get(name, usual)
        if name not in variables:
            recipe.notes.append(((), f"{name} is in the launch script, not in the manifest; taken as {usual}"))


def _take_nats(recipe: Recipe, documents: Sequence[Any]) -> None:
    """The cluster that the roles' variables name, when it is described in the same file, becomes the job's own."""
    url = next((entry["value"] for entry in recipe.spec.get("env", []) if entry["name"] == "PERSIA_NATS_URL"), "")
    host = url.removeprefix("nats://").partition(":")[0].partition(".")[0]
    for index, document in enumerate(documents):
        if not isinstance(document, Mapping) or document.get("kind") != "NatsCluster":
            continue
        name = document.get("metadata", {}).get("name")
        if name == host and isinstance(document.get("spec"), Mapping):
            recipe.nats_document = index
            recipe.spec["nats"] = dict(document["spec"])
            recipe.spec["env"] = [entry for entry in recipe.spec["env"] if entry["name"] != "PERSIA_NATS_URL"]
            said = f"the NatsCluster {name} is only for these roles; it becomes the job's own NATS"
            recipe.notes.append(((f"documents[{index}]",), said))
            return


class _StatefulSet:
    def __init__(self, document: Mapping[str, Any], place: Place, recipe: Recipe, variables: dict[str, str]) -> None:
        self._document = document
        self._place = place
        self._recipe = recipe
        self._variables = variables

    def read(self) -> Iterator[Finding]:
        """Adds the role to the recipe; what cannot be kept is yielded."""
        if self._document.get("apiVersion") != API_VERSION:
            yield (*self._place, "apiVersion"), f"a StatefulSet of this version is not known; write {API_VERSION}"
            return
        try:
            metadata, spec = self._document["metadata"], self._document["spec"]
            name, pod = str(metadata["name"]), spec["template"]["spec"]
            containers, replicas = pod["containers"], spec.get("replicas", 1)
            (container,) = containers
            words = [str(word) for word in (*container.get("command", ()), *container.get("args", ()))]
        except (KeyError, TypeError, AttributeError, ValueError):
            said = "is no StatefulSet with one container; write metadata.name, spec.replicas and spec.template.spec"
            yield self._place, said
            return
        role = next((_ROLE_WORDS[word] for word in (*reversed(words), name) if word in _ROLE_WORDS), None)
        if role is None:
            near = nearest(name, ["trainer", "data-compose", "middleware", "emb-server"])
            yield (*self._place, "metadata", "name"), f"nothing says which role of PERSIA this is; {near}"
            return
        if role in self._recipe.spec:
            yield (*self._place, "metadata", "name"), f"is a second StatefulSet of the role {role}; keep one"
            return
        yield from self._unknown(pod, container)
        described: dict[str, Any] = {"replicas": replicas}
        described |= {key: container[key] for key in _FROM_CONTAINER if key in container}
        described |= {key: pod[key] for key in _FROM_POD if key in pod}
        yield from self._read_variables(container.get("env") or [], role, described)
        yield from self._share("imagePullPolicy", container.get("imagePullPolicy"))
        yield from self._read_volumes(pod.get("volumes") or [])
        self._recipe.spec[role] = described
        self._recipe.namespace = metadata.get("namespace") or self._recipe.namespace
        self._say(("metadata", "name"), f"the StatefulSet {name} is taken as the role {role}")
        script = next((word for word in words if word.endswith(".sh")), None)
        if script:
            self._say(
                ("spec", "template", "spec", "containers", 0, "args"),
                f"{script} is not run: persia-launcher starts the role with the same settings",
            )
        if "status" in self._document:
            self._say(("status",), "has no effect: Kubernetes writes it")

    def _say(self, place: Place, message: str) -> None:
        self._recipe.notes.append(((*self._place, *place), message))

    def _unknown(self, pod: Mapping[str, Any], container: Mapping[str, Any]) -> Iterator[Finding]:
        inside = (*self._place, "spec", "template", "spec")
        for key in pod.keys() - _POD_KEYS:
            yield (*inside, key), f"is not kept in a PersiaJob; {nearest(key, sorted(_POD_KEYS))}"
        for key in container.keys() - _LAUNCHING:
            yield (*inside, "containers", 0, key), f"is not kept in a PersiaJob; {nearest(key, sorted(_LAUNCHING))}"

    def _read_variables(self, listed: list[Any], role: str, described: dict[str, Any]) -> Iterator[Finding]:
        place = (*self._place, "spec", "template", "spec", "containers", 0, "env")
        kept = []
        for index, variable in enumerate(listed):
            name, value = variable.get("name"), variable.get("value")
            if name == "NPROC_PER_NODE" and role == "nnWorker":
                described["nprocPerNode"] = int(value) if str(value).isdigit() else value
            elif name == "REPLICA_SIZE" and str(value) != str(described["replicas"]):
                yield (
                    (*place, index, "value"),
                    f"says {value} but replicas is {described['replicas']}, so the role would wait for pods that never "
                    "come, or ignore some; make them equal",
                )
            elif name in _RECIPE_PATHS and value:
                if self._variables.setdefault(name, value) != value:
                    yield (*place, index, "value"), f"{name} has another value in another role; a job has one"
            elif name in ("PERSIA_NATS_IP", "PERSIA_NATS_URL") and value:
                if name == "PERSIA_NATS_IP":
                    self._say(
                        (*place[len(self._place) :], index, "name"),
                        "PERSIA_NATS_IP is read by no PERSIA since December 2021; taken as PERSIA_NATS_URL",
                    )
                yield from self._share_nats(value, (*place, index, "value"))
            elif name not in _SET_FOR_EACH_POD:
                kept.append(variable)
        if role == "nnWorker" and "nprocPerNode" not in described:
            yield place, "says no NPROC_PER_NODE, so nobody can tell how many processes train on each node; add it"
        if kept:
            described["env"] = kept

    def _share_nats(self, url: str, place: Place) -> Iterator[Finding]:
        shared = self._recipe.spec.setdefault("env", [{"name": "PERSIA_NATS_URL", "value": url}])
        if shared[0]["value"] != url:
            yield place, "is another NATS than the other roles use, so they would not find each other; write one"

    def _share(self, key: str, value: Any) -> Iterator[Finding]:  # noqa: ANN401
        if value is not None and self._recipe.spec.setdefault(key, value) != value:
            place = (*self._place, "spec", "template", "spec", "containers", 0, key)
            yield place, "differs from the other roles', but a PersiaJob has one for all; make them equal"

    def _read_volumes(self, listed: list[Any]) -> Iterator[Finding]:
        shared = self._recipe.spec.setdefault("volumes", [])
        for index, volume in enumerate(listed):
            same = [other for other in shared if other.get("name") == volume.get("name")]
            if not same:
                shared.append(volume)
            elif same[0] != volume:
                place = (*self._place, "spec", "template", "spec", "volumes", index)
                yield place, "differs from the other roles' volume of this name; rename one of them"
