"""Run settings, the same for every job and role: hardware, placement, volumes, variables and user.

Fields are spelt as in the platform (`node_selector`, `volumes` with a `volume_type`, `resources` by `cpu`, `mem` and
`gpu`, `secrets`, `envs`) or as in Kubernetes (`nodeSelector`, `volumes` with a source, `resources` by `requests`
and `limits`, `env`). Out of scope: creating Secrets; they already exist in the namespace and are only referenced here.
"""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Self

from pydantic import AfterValidator, BeforeValidator, Field, TypeAdapter, ValidationError, model_validator

from persia_infra.jobs.settings.run_volumes import RunVolume
from persia_infra.kube.affinity import Affinity
from persia_infra.kube.pod_templates import SHARED_MEMORY, EnvFrom, Toleration, UserId
from persia_infra.kube.pods import (
    ABOVE_ZERO,
    GPU,
    EnvVar,
    ObjectName,
    Resources,
    Volume,
    VolumeMount,
    duplicate_names,
    mount_folder,
    resource_findings,
)
from persia_infra.spec.base import Finding, Place, Quantity, Spec, refuse
from persia_infra.spec.quantity import check_quantity

SHARED_MEMORY_VOLUME = "shared-memory"
_OBJECT_NAME = TypeAdapter(ObjectName)


class Amount(Spec):
    """How much of one resource is reserved, and how much may be used."""

    requests: Quantity | None = None
    """How much is reserved for each pod."""
    limits: Quantity | None = None
    """How much each pod may use at most."""


class RunResources(Spec):
    """Hardware by resource (`cpu`, `mem` or `memory`, `gpu`), or Kubernetes' `requests` and `limits`."""

    cpu: Amount | None = None
    """CPU cores of each pod."""
    mem: Amount | None = None
    """Memory of each pod; another spelling of `memory`."""
    memory: Amount | None = None
    """Memory of each pod."""
    gpu: Amount | None = None
    """GPUs of each pod."""
    requests: dict[str, Quantity] = Field(default={})
    """What is reserved for each pod, by resource, as in Kubernetes."""
    limits: dict[str, Quantity] = Field(default={})
    """What each pod may use at most, by resource, as in Kubernetes."""

    @property
    def kubernetes(self) -> Resources:
        """The same amounts as Kubernetes' `requests` and `limits`."""
        requests, limits, _ = self._gathered()
        return Resources(requests=requests, limits=limits)

    def _gathered(self) -> tuple[dict[str, str], dict[str, str], dict[Place, Place]]:
        amounts = {"requests": dict(self.requests), "limits": dict(self.limits)}
        written: dict[Place, Place] = {}
        for key, name in (("cpu", "cpu"), ("mem", "memory"), ("memory", "memory"), ("gpu", GPU)):
            amount: Amount | None = getattr(self, key)
            for group in ("requests", "limits"):
                if amount and (text := getattr(amount, group)) is not None:
                    amounts[group][name] = text
                    written[group, name] = (key, group)
        return amounts["requests"], amounts["limits"], written

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        refuse(self._findings())
        return self

    def _findings(self) -> Iterator[Finding]:
        if self.mem and self.memory:
            yield ("mem",), "is another spelling of memory and cannot be combined with it; remove one"
        requests, limits, written = self._gathered()
        for group, name in written:
            if name in getattr(self, str(group)):
                yield written[group, name], f"is also given as {group}.{name}; remove one"
        for place, message in resource_findings(requests, limits):
            yield written.get(place, place), message


def _secret(value: Any) -> Any:  # noqa: ANN401
    if isinstance(value, Mapping):
        if "value" in value or "stringData" in value or "data" in value:
            raise ValueError(
                "must not contain a secret's value, which everyone who can read the stack or its state would see; "
                "put it into a Secret of the namespace and write the Secret's name"
            )
        return value
    if not isinstance(value, str):
        raise ValueError("must be the name of a Secret")
    try:
        _OBJECT_NAME.validate_python(value)
    except ValidationError:
        raise ValueError(
            "is not a valid name of a Secret; a secret's value must not be written here, where everyone who can read "
            "the stack would see it: put it into a Secret of the namespace and write the Secret's name"
        ) from None
    return {"name": value}


class SecretRef(Spec):
    """A Secret of the namespace: all its keys as variables, or one `key` as the variable `env`."""

    name: ObjectName
    """The name of a Secret in the job's namespace."""
    key: str | None = None
    """One key of the Secret; all keys become environment variables when absent."""
    env: str | None = None
    """The environment variable that gets the value of `key`."""

    @model_validator(mode="after")
    def _both_or_none(self) -> Self:
        if (self.key is None) != (self.env is None):
            raise ValueError("needs both key (of the Secret) and env (the variable that gets its value), or neither")
        return self


def _selector(value: Any) -> Any:  # noqa: ANN401
    """Converts the platform's list of keys and values to the mapping of Kubernetes."""
    if not isinstance(value, list):
        return value
    selector: dict[str, Any] = {}
    for index, entry in enumerate(value):
        if not isinstance(entry, Mapping) or set(entry) != {"key", "value"}:
            raise ValueError(f"entry {index} needs exactly the keys key and value")
        if not isinstance(entry["key"], str):
            raise ValueError(f"the key of entry {index} must be text; put it in quotes")
        if entry["key"] in selector:
            raise ValueError(
                f"the key {entry['key']!r} is given twice, but a node has only one value for it; remove one"
            )
        selector[entry["key"]] = entry["value"]
    return selector


def _room(value: str) -> str:
    if value:
        check_quantity(value)
    return value


class RunSettings(Spec):
    """Settings of a run or of one of its roles; every field is optional."""

    node_selector: Annotated[dict[str, str], BeforeValidator(_selector)] = Field(default={})
    """Labels that the nodes must have, as a mapping or as a list of `key` and `value`."""
    volumes: list[RunVolume] = Field(default=[])
    """Volumes of the pods, each with the path at which it is mounted."""
    volume_mounts: list[VolumeMount] = Field(default=[])
    """Mounts of volumes that have no `mountPath` of their own."""
    resources: RunResources = RunResources.defaults()
    """CPU, memory and GPUs of each pod."""
    secrets: list[Annotated[SecretRef, BeforeValidator(_secret)]] = Field(default=[])
    """Secrets of the namespace whose keys become environment variables; names, never values."""
    envs: list[EnvVar] = Field(default=[])
    """Environment variables of the main container."""
    env: list[EnvVar] = Field(default=[])
    """Another spelling of `envs`."""
    tolerations: list[Toleration] = Field(default=[])
    """Taints of nodes that the pods tolerate, in addition to those of their pool."""
    affinity: Affinity | None = None
    """Rules on which nodes the pods prefer or need, as in Kubernetes."""
    fs_group: UserId | None = None
    """The group that owns the volumes, as a number other than 0."""
    run_as_user: UserId | None = None
    """The user that the containers run as, as a number other than 0."""
    run_as_group: UserId | None = None
    """The group that the containers run as, as a number other than 0."""
    shared_memory: Annotated[str, AfterValidator(_room), ABOVE_ZERO] | None = None
    """Size limit of /dev/shm, which counts as the pod's memory; empty text for no limit of its own."""

    @property
    def variables(self) -> list[EnvVar]:
        """All variables, including those from single keys of Secrets."""
        keys = [
            EnvVar.model_validate(
                {"name": secret.env, "valueFrom": {"secretKeyRef": {"name": secret.name, "key": secret.key}}}
            )
            for secret in self.secrets
            if secret.key
        ]
        return [*self.envs, *self.env, *keys]

    @property
    def variable_sources(self) -> list[EnvFrom]:
        """The Secrets all of whose keys become variables."""
        whole = [secret for secret in self.secrets if not secret.key]
        return [EnvFrom.model_validate({"secretRef": {"name": secret.name}}) for secret in whole]

    def pod_volumes(self, job: str) -> list[Volume]:
        """The volumes of a pod of this job; shares are mounted through claims."""
        volumes = [volume.source(job) for volume in self.volumes]
        if self.shared_memory is not None:
            room = {"medium": "Memory", **({"sizeLimit": self.shared_memory} if self.shared_memory else {})}
            volumes.append(Volume.model_validate({"name": SHARED_MEMORY_VOLUME, "emptyDir": room}))
        return volumes

    @property
    def mounts(self) -> list[VolumeMount]:
        """The mounts of the main container."""
        mounts = [mount for volume in self.volumes if (mount := volume.mount) is not None]
        if self.shared_memory is not None:
            mounts.append(VolumeMount(name=SHARED_MEMORY_VOLUME, mount_path=SHARED_MEMORY))
        return [*mounts, *self.volume_mounts]

    @property
    def shared(self) -> Self:
        """The part that applies to every role of a job: data, variables and user, but not hardware."""
        return self.model_copy(
            update={
                "resources": RunResources(),
                "node_selector": {},
                "tolerations": [],
                "affinity": None,
                "shared_memory": None,
            }
        )

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        refuse([*self._volume_findings(), *self._variable_findings()])
        return self

    def _volume_findings(self) -> Iterator[Finding]:
        names: set[str] = {SHARED_MEMORY_VOLUME} if self.shared_memory is not None else set()
        for index, volume in enumerate(self.volumes):
            if volume.name in names:
                yield ("volumes", index, "name"), f"volume {volume.name!r} is given twice; remove one"
            names.add(volume.name)
        places: dict[str, str] = {}
        mounts: list[tuple[Place, VolumeMount]] = [
            (("volumes", index, "mount_path"), mount)
            for index, volume in enumerate(self.volumes)
            if (mount := volume.mount) is not None
        ]
        mounts += [(("volumeMounts", index, "mountPath"), mount) for index, mount in enumerate(self.volume_mounts)]
        if self.shared_memory is not None:
            places[SHARED_MEMORY] = "sharedMemory"
        for place, mount in mounts:
            path = mount_folder(mount)
            if path in places:
                yield (
                    place,
                    f"{path} is mounted twice (also by {places[path]}), so one mount would hide the other; remove one",
                )
            places.setdefault(path, mount.name)
        used = {mount.name for _, mount in mounts}
        for index, mount in enumerate(self.volume_mounts):
            if mount.name not in names:
                known = ", ".join(sorted(names)) or "none"
                yield (
                    ("volumeMounts", index, "name"),
                    f"volume {mount.name!r} is not declared, so Kubernetes would refuse the pod; declared: {known}",
                )
        for index, volume in enumerate(self.volumes):
            if volume.name not in used:
                yield (
                    ("volumes", index),
                    f"volume {volume.name!r} is not mounted, so no program could use it; add mount_path",
                )

    def _variable_findings(self) -> Iterator[Finding]:
        if self.env and self.envs:
            yield ("env",), "is another spelling of envs and cannot be combined with it; remove one"
        for key, variables in (("envs", self.envs), ("env", self.env)):
            for at, message in duplicate_names(variables, "variable"):
                yield (key, *at), message
        names: set[str] = {variable.name for variable in (*self.envs, *self.env)}
        for index, secret in enumerate(self.secrets):
            if secret.env in names:
                yield ("secrets", index, "env"), f"variable {secret.env!r} is given twice; remove one"
            if secret.env:
                names.add(secret.env)
