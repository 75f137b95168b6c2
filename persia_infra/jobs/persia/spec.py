"""A PERSIA job: the fields of its CRD, and those that the CRD lacks for placement, NATS, configuration and scripts.

Older dialects are translated by `dialects`; the two configuration files are described in `config`, and the checks
across fields are in `rules`.
"""

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Literal, Self

from pydantic import Field, ModelWrapValidatorHandler, PrivateAttr, model_validator

from persia_infra.jobs.job import NAME_WHILE_CHECKING, Job, ManifestForm, Placements, Workload
from persia_infra.jobs.job_status import JobView
from persia_infra.jobs.persia import rules as persia_rules
from persia_infra.jobs.persia.config import EmbeddingConfigFile, GlobalConfigFile, written
from persia_infra.jobs.persia.dialects import NATS_URL, in_todays_words
from persia_infra.jobs.persia.launch import LAUNCHES, own_nats_name
from persia_infra.jobs.persia.objects import API_VERSION, persia_objects
from persia_infra.jobs.persia.pods import gateway_template, overridden_places, role_template, settings_of
from persia_infra.jobs.persia.roles import Mode, NnWorker, PersiaEnv, Role, ScriptedRole
from persia_infra.jobs.settings.run_settings import RunSettings
from persia_infra.jobs.settings.run_volumes import Share
from persia_infra.jobs.shares import all_shares, share_findings
from persia_infra.kube.objects import ObjectGroup
from persia_infra.kube.pod_security import Need
from persia_infra.kube.pods import EnvVar, Volume
from persia_infra.nats.objects import server_template
from persia_infra.nats.spec import NatsSpec
from persia_infra.spec.base import Finding, Place, refuse


class PersiaJobSpec(Job):
    """A PERSIA job; roles that are absent are not run."""

    MANIFESTS = (ManifestForm("PersiaJob", API_VERSION),)
    COMPONENT = "PersiaJob"
    CONFIG_VOLUME: ClassVar[str] = "persia-config"
    CONFIG_FOLDER: ClassVar[str] = "/etc/persia"
    CONFIG_READERS: ClassVar[tuple[str, ...]] = ("embeddingParameterServer", "embeddingWorker")
    """The roles whose programs read the configuration files; the others only get their paths as variables."""
    SCRIPT_VOLUMES: ClassVar[Mapping[str, str]] = {"nnWorker": "nn-worker-script", "dataloader": "dataloader-script"}
    SCRIPT_FOLDER: ClassVar[str] = "/etc/persia-script"
    SCRIPT_NAMES: ClassVar[Mapping[str, str]] = {"nnWorker": "train.py", "dataloader": "data_loader.py"}
    SHARED_MEMORY_VOLUME: ClassVar[str] = "shared-memory"

    kind: Literal["PersiaJob"] = Field(default="PersiaJob", exclude=True)  # pyright: ignore[reportIncompatibleVariableOverride]
    """Always PersiaJob."""
    mode: Mode = Field(default="native", exclude=True)
    """Whether the job runs as plain Kubernetes workloads (native) or through the PERSIA operator."""
    persia_env: PersiaEnv = PersiaEnv.defaults()
    """Paths of scripts and configuration files inside the containers."""
    global_config: GlobalConfigFile | None = Field(default=None, exclude=True)
    """Content of `global_config.yaml`, as text or as a mapping."""
    embedding_config: EmbeddingConfigFile | None = Field(default=None, exclude=True)
    """Content of `embedding_config.yaml`, as text (which keeps the order of the slots) or as a mapping."""
    enable_metrics: bool = True
    """Runs a metrics gateway that the roles push their metrics to."""
    volumes: list[Volume] = Field(default=[])
    """Volumes that the roles can mount, as in Kubernetes."""
    env: list[EnvVar] = Field(default=[])
    """Environment variables of every role."""
    log_level: str = "info"
    """Log level of PERSIA's programs."""
    restart_policy: Literal["Always", "OnFailure", "Never"] | None = None
    """Restart policy of the pods, as in Kubernetes."""
    image_pull_policy: Literal["Always", "IfNotPresent", "Never"] | None = None
    """When images are pulled, as in Kubernetes."""
    embedding_parameter_server: Role | None = None
    """The servers that hold the embeddings."""
    embedding_worker: Role | None = None
    """The workers that look up and update embeddings between data loaders and nn-workers."""
    nn_worker: NnWorker | None = None
    """The workers that train the dense part of the model, usually on GPUs."""
    dataloader: ScriptedRole | None = None
    """The pods that read the training data and send batches."""
    nats: NatsSpec | None = Field(default=None, exclude=True)
    """The job's own NATS cluster; three servers by default, none when `PERSIA_NATS_URL` names another one."""

    _profiles: Mapping[str, RunSettings] = PrivateAttr(default={})

    @property
    def roles(self) -> dict[str, Role]:
        """The roles that the job has, by their key in the CRD."""
        named = {
            "embeddingParameterServer": self.embedding_parameter_server,
            "embeddingWorker": self.embedding_worker,
            "nnWorker": self.nn_worker,
            "dataloader": self.dataloader,
        }
        return {key: role for key, role in named.items() if role is not None}

    @property
    def given_nats_url(self) -> EnvVar | None:
        """The variable with the address of an existing NATS, if `env` has one."""
        return next((variable for variable in self.env if variable.name == NATS_URL), None)

    @property
    def own_nats(self) -> NatsSpec | None:
        """The job's own NATS cluster; None if `env` names another one.

        Each job has its own: PERSIA's subjects contain no job id, so two jobs on one cluster would mix their batches.
        """
        return (self.nats or NatsSpec()) if self.given_nats_url is None else None

    @property
    def config_files(self) -> dict[str, str]:
        """The text of the configuration files that are given inline, by file name."""
        given = {"global_config.yaml": self.global_config, "embedding_config.yaml": self.embedding_config}
        return {name: written(content) for name, content in given.items() if content is not None}

    @property
    def global_config_path(self) -> str:
        """The path of `global_config` in the containers."""
        return self.persia_env.global_config or f"{self.CONFIG_FOLDER}/global_config.yaml"

    @property
    def embedding_config_path(self) -> str:
        """The path of `embedding_config` in the containers."""
        return self.persia_env.embedding_config or f"{self.CONFIG_FOLDER}/embedding_config.yaml"

    def script(self, key: str) -> str | None:
        """The text of a role's script, if it is given inline."""
        role = self.roles.get(key)
        return role.script if isinstance(role, ScriptedRole) else None

    def entry_path(self, key: str) -> str | None:
        """The path of a role's script in its container; None for a role without a script."""
        if self.script(key):
            return f"{self.SCRIPT_FOLDER}/{self.SCRIPT_NAMES[key]}"
        entries = {"nnWorker": self.persia_env.nn_worker_entry, "dataloader": self.persia_env.dataloader_entry}
        return entries.get(key)

    def workloads(self, name: str = NAME_WHILE_CHECKING, placements: Placements | None = None) -> list[Workload]:
        """Returns the pods of the roles, then of the metrics gateway, then of NATS."""
        places = placements or {}
        # The PERSIA operator creates its pods without a pool.
        unplaced = self.mode == "operator"
        loads = []
        for key, role in self.roles.items():
            template = role_template(self, name, key, self._profiles, places.get(key))
            loads.append(Workload(key, (key,), role.replicas, template, role.pool, anywhere=unplaced))
        if self.enable_metrics:
            template = gateway_template(name, places.get("metricsGateway"))
            loads.append(Workload("metricsGateway", ("enableMetrics",), 1, template, anywhere=True))
        if nats := self.own_nats:
            template = server_template(nats, own_nats_name(name), places.get("nats"))
            loads.append(Workload("nats", ("nats",), nats.size, template, nats.pool))
        return loads

    def objects(self, name: str, namespace: str, placements: Placements) -> ObjectGroup:
        """Returns the job's objects, including those of its own NATS."""
        return persia_objects(self, name, namespace, placements)

    def needed_operators(self) -> dict[str, str]:
        """The PERSIA and NATS operators where their modes ask for them, and Volcano for a gang."""
        needed = {}
        if self.mode == "operator":
            needed["persia"] = "with mode: operator the PERSIA operator creates its pods"
        if self.own_nats and self.own_nats.mode == "operator":
            needed["nats"] = "with nats.mode: operator the NATS operator creates its servers"
        return {**needed, **super().needed_operators()}

    def view(self, name: str) -> JobView:  # noqa: ARG002
        """Returns where to find the job's pods and, with `mode: operator`, its object."""
        pods = {key: rf"{launch.suffix}-\d+" for key, launch in LAUNCHES.items()}
        pods |= {"metricsGateway": r"metrics-gateway(-[a-z0-9]+)*", "nats": r"nats-\d+"}
        if self.mode != "operator":
            return JobView(pods, trains="nnWorker")
        return JobView(
            pods,
            f"{API_VERSION}/persiajobs",
            trains="nnWorker",
            why_pods_missing="the PERSIA operator creates each pod only once, so a lost or refused one does not "
            "come back: replace the job",
            made_by_others=("nats",),
        )

    def use_profiles(self, profiles: Mapping[str, RunSettings]) -> None:
        """Resolves profile names against the given profiles."""
        self._profiles = profiles

    def unknown_profiles(self) -> Iterator[Finding]:
        """Profile names that the environment does not define."""
        known = ", ".join(self._profiles) or "none"
        for key, role in self.roles.items():
            if role.profile is not None and role.profile not in self._profiles:
                yield (key, "profile"), f"the environment has no profile {role.profile!r}; known: {known}"

    def settings_findings(self) -> Iterator[Finding]:
        """Shares that would use the same claim."""
        yield from share_findings({(key,): self._settings_of(key) for key in self.roles})

    def shares(self, name: str) -> list[Share]:
        """The shares outside the cluster that the job's pods mount, each once."""
        return all_shares(name, [self._settings_of(key) for key in self.roles])

    @classmethod
    def findings_between(cls, jobs: "Mapping[str, tuple[str, Self]]") -> Iterator[Finding]:
        """Jobs that share a NATS cluster and would receive each other's batches."""
        return persia_rules.shared_nats_findings(jobs)

    def security_need(self) -> Need | None:
        """The Pod Security level that the pods need; PERSIA's images run as root unless a role sets a user."""
        if self.mode != "operator":
            return super().security_need()
        folder = next((volume.name for volume in self.volumes if volume.host_path), None)
        if folder is not None:
            return "privileged", f"its volume {folder} is a folder on the node"
        return "baseline", "the PERSIA operator sets no security context on its pods"

    def _settings_of(self, key: str) -> RunSettings:
        return settings_of(self.roles[key], self._profiles)[0]

    def _remarks(self) -> Iterator[Finding]:
        yield from persia_rules.notes(self)
        for key, role in self.roles.items():
            whose = f"the profile {role.profile!r} or the role's settings" if role.profile else "the role's settings"
            for place in overridden_places(self, key, self._profiles):
                at = place if place[0] == "volumes" else (key, *place)
                yield at, f"is overridden by {whose}"
            given = {variable.name: variable for variable in self._settings_of(key).variables}
            for place, variable in self._variables():
                if given.get(variable.name, variable) != variable:
                    yield place, f"is overridden for {key} by {whose}"
        if self.nats:
            for place, message in self.nats.notes():
                yield ("nats", *place), message

    def _variables(self) -> Iterator[tuple[Place, EnvVar]]:
        """The variables that every role gets, by the place where they are described."""
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
