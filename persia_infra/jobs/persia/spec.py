"""A PERSIA job in the words of its CRD, plus what the CRD lacks: placement, NATS, inline configuration and scripts.

Older dialects are read as well (`persia_dialects`); what the two configuration files may hold is in
`persia_config`, and what cannot be is in `persia_rules`.
"""

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Literal, Self

from pydantic import Field, ModelWrapValidatorHandler, PrivateAttr, model_validator

from persia_infra.jobs.job import Job, Workload
from persia_infra.jobs.persia import rules as persia_rules
from persia_infra.jobs.persia.config import EmbeddingConfigFile, GlobalConfigFile, written
from persia_infra.jobs.persia.dialects import NATS_URL, in_todays_words
from persia_infra.jobs.persia.roles import Mode, NnWorker, PersiaEnv, Role, ScriptedRole
from persia_infra.jobs.persia.settings import SettledRole, settled_role
from persia_infra.jobs.run_job import all_shares, share_findings
from persia_infra.jobs.settings.run_settings import RunSettings
from persia_infra.jobs.settings.run_volumes import Share
from persia_infra.kube.pod_security import Need, security_need
from persia_infra.kube.pods import EnvVar, Resources, Volume
from persia_infra.nats.spec import NatsSpec
from persia_infra.spec.base import DnsLabel, Finding, Place, refuse

METRICS_RESOURCES = Resources(requests={"cpu": "50m", "memory": "64Mi"}, limits={"memory": "256Mi"})


class PersiaJobSpec(Job):
    """The whole job; roles that are absent are not run."""

    CONFIG_VOLUME: ClassVar[str] = "persia-config"
    CONFIG_FOLDER: ClassVar[str] = "/etc/persia"
    CONFIG_READERS: ClassVar[tuple[str, ...]] = ("embeddingParameterServer", "embeddingWorker")
    """The roles whose programs open the configuration files; the others only have their paths as variables."""
    SCRIPT_VOLUMES: ClassVar[Mapping[str, str]] = {"nnWorker": "nn-worker-script", "dataloader": "dataloader-script"}
    SCRIPT_FOLDER: ClassVar[str] = "/etc/persia-script"
    SCRIPT_NAMES: ClassVar[Mapping[str, str]] = {"nnWorker": "train.py", "dataloader": "data_loader.py"}
    SHARED_MEMORY_VOLUME: ClassVar[str] = "shared-memory"

    kind: Literal["PersiaJob"] = Field(default="PersiaJob", exclude=True)  # pyright: ignore[reportIncompatibleVariableOverride]
    namespace: DnsLabel | None = Field(default=None, exclude=True)
    mode: Mode = Field(default="native", exclude=True)
    persia_env: PersiaEnv = PersiaEnv()
    global_config: GlobalConfigFile | None = Field(default=None, exclude=True)
    embedding_config: EmbeddingConfigFile | None = Field(default=None, exclude=True)
    enable_metrics: bool = True
    volumes: list[Volume] = Field(default=[])
    env: list[EnvVar] = Field(default=[])
    log_level: str = "info"
    restart_policy: Literal["Always", "OnFailure", "Never"] | None = None
    image_pull_policy: Literal["Always", "IfNotPresent", "Never"] | None = None
    embedding_parameter_server: Role | None = None
    embedding_worker: Role | None = None
    nn_worker: NnWorker | None = None
    dataloader: ScriptedRole | None = None
    nats: NatsSpec | None = Field(default=None, exclude=True)

    _profiles: Mapping[str, RunSettings] = PrivateAttr(default={})

    @property
    def roles(self) -> dict[str, Role]:
        """The roles that are there, by their key in the CRD."""
        named = {
            "embeddingParameterServer": self.embedding_parameter_server,
            "embeddingWorker": self.embedding_worker,
            "nnWorker": self.nn_worker,
            "dataloader": self.dataloader,
        }
        return {key: role for key, role in named.items() if role is not None}

    @property
    def given_nats_url(self) -> EnvVar | None:
        """The variable that names the NATS, where the description has one."""
        return next((variable for variable in self.env if variable.name == NATS_URL), None)

    @property
    def own_nats(self) -> NatsSpec | None:
        """The job's NATS cluster; none when its variables name another one.

        Each job has its own: PERSIA's subjects carry no job id, so two jobs on one cluster would mix.
        """
        return (self.nats or NatsSpec()) if self.given_nats_url is None else None

    @property
    def config_files(self) -> dict[str, str]:
        """Files that are given inline, by name."""
        given = {"global_config.yaml": self.global_config, "embedding_config.yaml": self.embedding_config}
        return {name: written(content) for name, content in given.items() if content is not None}

    @property
    def global_config_path(self) -> str:
        """Where `global_config` is in the containers."""
        return self.persia_env.global_config or f"{self.CONFIG_FOLDER}/global_config.yaml"

    @property
    def embedding_config_path(self) -> str:
        """Where `embedding_config` is in the containers."""
        return self.persia_env.embedding_config or f"{self.CONFIG_FOLDER}/embedding_config.yaml"

    def script(self, key: str) -> str | None:
        """The script of a role, where it is given inline."""
        role = self.roles.get(key)
        return role.script if isinstance(role, ScriptedRole) else None

    def entry_path(self, key: str) -> str | None:
        """Where a role's script is in its container; none for a role without one."""
        if self.script(key):
            return f"{self.SCRIPT_FOLDER}/{self.SCRIPT_NAMES[key]}"
        entries = {"nnWorker": self.persia_env.nn_worker_entry, "dataloader": self.persia_env.dataloader_entry}
        return entries.get(key)

    def use_profiles(self, profiles: Mapping[str, RunSettings]) -> None:
        """Names of profiles mean these from now on."""
        self._profiles = profiles

    def settings_findings(self) -> Iterator[Finding]:
        """Profiles that nobody described, and shares that would get in each other's way."""
        known = ", ".join(self._profiles) or "none"
        for key, role in self.roles.items():
            if role.profile is not None and role.profile not in self._profiles:
                yield (
                    (key, "profile"),
                    f"no profile {role.profile!r} is described by the environment; known: {known}",
                )
        yield from share_findings({(key,): self.settled(key, "job").settings for key in self.roles})

    def settled(self, key: str, job: str) -> SettledRole:
        """A role with its settings and its profile in it."""
        return settled_role(key, self.roles[key], self.volumes, self._profiles, job=job)

    def shares(self, job: str) -> list[Share]:
        """Volumes outside the cluster that its pods claim, each once."""
        return all_shares(job, [self.settled(key, job).settings for key in self.roles])

    def workloads(self) -> list[Workload]:
        """The roles, then the metrics gateway, then NATS."""
        unplaced = self.mode == "operator"
        found = []
        for key in self.roles:
            role = self.settled(key, "job").role
            found.append(
                Workload(
                    key,
                    (key,),
                    role.replicas,
                    role.resources,
                    role.pool,
                    anywhere=unplaced,
                    node_selector=role.node_selector,
                )
            )
        if self.enable_metrics:
            found.append(Workload("metricsGateway", ("enableMetrics",), 1, METRICS_RESOURCES, anywhere=True))
        if nats := self.own_nats:
            found.append(Workload("nats", ("nats",), nats.size, nats.server_resources, nats.pool))
        return found

    def security_need(self) -> Need | None:
        """PERSIA's images run as root unless a role says otherwise."""
        if self.mode == "operator":
            folder = next((volume.name for volume in self.volumes if volume.host_path), None)
            if folder is not None:
                return "privileged", f"its volume {folder} is a folder of the node"
            return "baseline", "the PERSIA operator says nothing of its pods' privileges"
        return security_need([self.settled(key, "job").pod for key in self.roles])

    def _remarks(self) -> Iterator[Finding]:
        """What differs from PERSIA's own way with the same manifest."""
        yield from persia_rules.notes(self)
        for key, role in self.roles.items():
            whose = f"the profile {role.profile!r} or the role's settings" if role.profile else "the role's settings"
            settled = self.settled(key, "job")
            for place in settled.overridden:
                at = place if place[0] == "volumes" else (key, *place)
                yield at, f"does not count: {whose} say otherwise, and win"
            given = {variable.name: variable for variable in settled.settings.variables}
            for place, variable in self._variables():
                if given.get(variable.name, variable) != variable:
                    yield place, f"does not count for {key}: {whose} say otherwise, and win"
        if self.nats:
            for place, message in self.nats.notes():
                yield ("nats", *place), message

    def _variables(self) -> Iterator[tuple[Place, EnvVar]]:
        """Those of all roles, by where they are described."""
        if "log_level" in self.model_fields_set:
            yield ("logLevel",), EnvVar(name="LOG_LEVEL", value=self.log_level)
        for name, path in self.persia_env.model_dump(by_alias=True, exclude_none=True).items():
            yield ("persiaEnv", name), EnvVar(name=name, value=path)
        yield from ((("env", index), variable) for index, variable in enumerate(self.env))

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        refuse(persia_rules.findings(self))
        return self

    # Last, so that it sees what the other validators refuse.
    @model_validator(mode="wrap")
    @classmethod
    def _from_any_dialect(cls, data: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:  # noqa: ANN401
        return cls._read(in_todays_words(data), handler) if isinstance(data, Mapping) else handler(data)
