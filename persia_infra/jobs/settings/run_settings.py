"""What a run asks of Kubernetes, the same for every job and role: where, with what, and as whom it runs.

The words are the platform's (`node_selector`, `volumes` with a `volume_type`, `resources` by `cpu`, `mem` and
`gpu`, `secrets`, `envs`) or Kubernetes' own (`nodeSelector`, `volumes` with a source, `resources` by `requests`
and `limits`, `env`). Out of scope: making Secrets; they are in the namespace already, and only named here.
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
    resource_findings,
)
from persia_infra.spec.base import Finding, Place, Quantity, Spec, refuse
from persia_infra.spec.quantity import check_quantity

SHARED_MEMORY_VOLUME = "shared-memory"
_OBJECT_NAME = TypeAdapter(ObjectName)


class Amount(Spec):
    """How much of one resource is reserved, and how much may be used."""

    requests: Quantity | None = None
    limits: Quantity | None = None


class RunResources(Spec):
    """Hardware by resource (`cpu`, `mem` or `memory`, `gpu`), or Kubernetes' `requests` and `limits`."""

    cpu: Amount | None = None
    mem: Amount | None = None
    memory: Amount | None = None
    gpu: Amount | None = None
    requests: dict[str, Quantity] = Field(default={})
    limits: dict[str, Quantity] = Field(default={})

    @property
    def kubernetes(self) -> Resources:
        """The same in Kubernetes' shape."""
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
            yield ("mem",), "is memory in its other spelling, and both are given; remove one"
        requests, limits, written = self._gathered()
        for group, name in written:
            if name in getattr(self, str(group)):
                yield written[group, name], f"is also given as {group}.{name}; remove one"
        for place, said in resource_findings(requests, limits):
            at = written.get(place, place)
            yield at, said.replace(f'write limits: {{"{GPU}"', 'write limits: {"gpu"') if at[0] == "gpu" else said


def _secret(value: Any) -> Any:  # noqa: ANN401
    if isinstance(value, Mapping):
        if "value" in value or "stringData" in value or "data" in value:
            raise ValueError(
                "a secret's value is not written here, where everybody who reads the stack or its state would see it; "
                "put it into a Secret of the namespace, and give its name"
            )
        return value
    if not isinstance(value, str):
        raise ValueError("must be the name of a Secret")
    try:
        _OBJECT_NAME.validate_python(value)
    except ValidationError:
        raise ValueError(
            "is no name of a Secret; a value is not written here, where everybody who reads the stack would see it: "
            "put it into a Secret of the namespace, and give its name"
        ) from None
    return {"name": value}


class SecretRef(Spec):
    """A Secret of the namespace: all its keys as variables, or one `key` as the variable `env`."""

    name: ObjectName
    key: str | None = None
    env: str | None = None

    @model_validator(mode="after")
    def _both_or_none(self) -> Self:
        if (self.key is None) != (self.env is None):
            raise ValueError("key and env go together: the key of the Secret, and the variable that it becomes")
        return self


def _selector(value: Any) -> Any:  # noqa: ANN401
    """The platform's list of keys and values as the mapping that Kubernetes has."""
    if not isinstance(value, list):
        return value
    found: dict[str, Any] = {}
    for index, entry in enumerate(value):
        if not isinstance(entry, Mapping) or set(entry) != {"key", "value"}:
            raise ValueError(f"entry {index} needs exactly the keys key and value")
        if not isinstance(entry["key"], str):
            raise ValueError(f"the key of entry {index} must be text; put it in quotes")
        if entry["key"] in found:
            raise ValueError(f"the key {entry['key']!r} is given twice, and a node has one value only; remove one")
        found[entry["key"]] = entry["value"]
    return found


def _room(value: str) -> str:
    if value:
        check_quantity(value)
    return value


class RunSettings(Spec):
    """What one run, or one role of it, asks for; everything may be left out."""

    node_selector: Annotated[dict[str, str], BeforeValidator(_selector)] = Field(default={})
    volumes: list[RunVolume] = Field(default=[])
    volume_mounts: list[VolumeMount] = Field(default=[])
    """For volumes that are given without a mount path of their own."""
    resources: RunResources = RunResources()
    secrets: list[Annotated[SecretRef, BeforeValidator(_secret)]] = Field(default=[])
    envs: list[EnvVar] = Field(default=[])
    env: list[EnvVar] = Field(default=[])
    tolerations: list[Toleration] = Field(default=[])
    affinity: Affinity | None = None
    fs_group: UserId | None = None
    run_as_user: UserId | None = None
    run_as_group: UserId | None = None
    shared_memory: Annotated[str, AfterValidator(_room), ABOVE_ZERO] | None = None
    """Upper bound of /dev/shm, which counts as the container's memory; empty text for none but that."""

    @property
    def variables(self) -> list[EnvVar]:
        """All variables, those from single keys of Secrets included."""
        keys = [
            EnvVar.model_validate({"name": one.env, "valueFrom": {"secretKeyRef": {"name": one.name, "key": one.key}}})
            for one in self.secrets
            if one.key
        ]
        return [*self.envs, *self.env, *keys]

    @property
    def variable_sources(self) -> list[EnvFrom]:
        """Secrets whose keys all become variables."""
        return [EnvFrom.model_validate({"secretRef": {"name": one.name}}) for one in self.secrets if not one.key]

    def pod_volumes(self, job: str) -> list[Volume]:
        """Volumes of a pod of this job; shares are mounted through the claims of `claims`."""
        found = [volume.source(job) for volume in self.volumes]
        if self.shared_memory is not None:
            room = {"medium": "Memory", **({"sizeLimit": self.shared_memory} if self.shared_memory else {})}
            found.append(Volume.model_validate({"name": SHARED_MEMORY_VOLUME, "emptyDir": room}))
        return found

    @property
    def mounts(self) -> list[VolumeMount]:
        """Where the main container sees the volumes."""
        found = [mount for volume in self.volumes if (mount := volume.mount) is not None]
        if self.shared_memory is not None:
            found.append(VolumeMount(name=SHARED_MEMORY_VOLUME, mount_path=SHARED_MEMORY))
        return [*found, *self.volume_mounts]

    @property
    def annotations(self) -> dict[str, str]:
        """What GKE wants to see on pods with such volumes."""
        if any(volume.volume_type == "gcs_fuse" or volume.is_gcs_fuse for volume in self.volumes):
            return {"gke-gcsfuse/volumes": "true"}
        return {}

    @property
    def shared(self) -> Self:
        """The part that every role of a job has in common: data, variables and the user; not the hardware."""
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
            path = mount.folder
            if path in places:
                yield (
                    place,
                    f"{path} is mounted twice (also by {places[path]}), so one would hide the other; remove one",
                )
            places.setdefault(path, mount.name)
        used = {mount.name for _, mount in mounts}
        for index, mount in enumerate(self.volume_mounts):
            if mount.name not in names:
                known = ", ".join(sorted(names)) or "none"
                yield (
                    ("volumeMounts", index, "name"),
                    f"no volume {mount.name!r} is declared, so the pod would be refused; declared: {known}",
                )
        for index, volume in enumerate(self.volumes):
            if volume.name not in used:
                yield (
                    ("volumes", index),
                    f"{volume.name!r} is mounted nowhere, so no program would see it; add mount_path",
                )

    def _variable_findings(self) -> Iterator[Finding]:
        if self.env and self.envs:
            yield ("env",), "is envs in its other spelling, and both are given; remove one"
        for key, variables in (("envs", self.envs), ("env", self.env)):
            for at, said in duplicate_names(variables, "variable"):
                yield (key, *at), said
        names: set[str] = {variable.name for variable in (*self.envs, *self.env)}
        for index, one in enumerate(self.secrets):
            if one.env in names:
                yield ("secrets", index, "env"), f"variable {one.env!r} is given twice; remove one"
            if one.env:
                names.add(one.env)
