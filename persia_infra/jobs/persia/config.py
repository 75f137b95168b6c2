"""PERSIA's two configuration files, `global_config` and `embedding_config`, with the limits that its servers enforce.

PERSIA ignores unknown keys in both, so a misspelt one silently leaves the default in place; here it is
an error. Keys that are not given are not written to the file, so PERSIA's own defaults apply.
"""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, ClassVar, Literal, Self

import yaml
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from persia_infra.spec.base import Finding, refuse
from persia_infra.spec.yaml_files import parse_documents

_DUMPER: type = getattr(yaml, "CSafeDumper", yaml.SafeDumper)

Count = Annotated[int, Field(ge=0, lt=2**64)]
Positive = Annotated[int, Field(ge=1, lt=2**64)]


class _Section(BaseModel):
    """A section of a file; keys are spelt as in PERSIA, and numbers in quotes are refused."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, hide_input_in_errors=True)

    MISTAKEN: ClassVar[Mapping[str, str]] = {}
    """Wrong keys from older releases, PERSIA's examples or its documentation, each with the fix."""

    @model_validator(mode="before")
    @classmethod
    def _refuse_mistaken_keys(cls, data: Any) -> Any:  # noqa: ANN401
        if isinstance(data, Mapping):
            refuse(((key,), message) for key, message in cls.MISTAKEN.items() if key in data)
        return data


def _renamed(now: str) -> str:
    return f"PERSIA does not read this key, so its default would apply; write {now!r}"


class MetricsConfig(_Section):
    """What the servers report to the metrics gateway."""

    MISTAKEN = {"push_interval_sec": _renamed("push_interval_seconds")}

    enable_metrics: bool = True
    """Reports metrics to the gateway."""
    job_name: str = "persia_default_jobname"
    """The job's name in the metrics."""
    push_interval_seconds: Positive = 10
    """Seconds between two reports."""


class InferConfig(_Section):
    """Where inference finds the parameter servers and the embeddings; both are required."""

    servers: list[str]
    """Addresses of the parameter servers, as host:port."""
    embedding_checkpoint: str
    """Path of the checkpoint that the embeddings are loaded from."""


class CheckpointingConfig(_Section):
    """How checkpoints are written and read."""

    num_workers: Positive = 4
    """Threads per server that write and read checkpoints."""


class CommonConfig(_Section):
    """Settings that parameter servers and embedding workers share."""

    MISTAKEN = {
        "intent": _renamed("job_type"),
        "num_embedding_io_workers": _renamed("checkpointing_config: {num_workers: …}"),
        "initial_sparse_checkpoint": _renamed("infer_config: {embedding_checkpoint: …}"),
        "servers": _renamed("infer_config: {servers: […]}"),
    }

    metrics_config: MetricsConfig = MetricsConfig.model_construct()
    """What the servers report to the metrics gateway."""
    job_type: Literal["Train", "Eval", "Infer"] = "Train"
    """Whether the job trains, evaluates or serves inference."""
    infer_config: InferConfig | None = None
    """Servers and checkpoint for inference; required with `job_type: Infer`."""
    checkpointing_config: CheckpointingConfig = CheckpointingConfig.model_construct()
    """How checkpoints are written and read."""

    @model_validator(mode="after")
    def _inference_has_servers(self) -> Self:
        if self.job_type == "Infer" and not (self.infer_config and self.infer_config.servers):
            refuse(
                [
                    (
                        ("infer_config",),
                        "lists no servers, but with job_type: Infer the embedding workers connect only to those; "
                        "list the parameter servers as host:port under infer_config: {servers: […]}",
                    )
                ]
            )
        return self


class EmbeddingWorkerConfig(_Section):
    """Buffers of the embedding workers."""

    forward_buffer_size: Positive = 1000
    """Number of batches that an embedding worker holds for the nn-workers."""
    buffered_data_expired_sec: Positive = 1000
    """Seconds after which a batch that no nn-worker has fetched is dropped."""


class EmbeddingParameterServerConfig(_Section):
    """Size and incremental updates of each parameter server."""

    MISTAKEN = {
        "full_amount_manager_buffer_size": "current versions of PERSIA do not read this key; remove it",
        "num_hashmap_internal_shard": _renamed("num_hashmap_internal_shards"),
    }

    capacity: Positive = 1_000_000_000
    """Number of embedding vectors (not parameters) that one server holds."""
    num_hashmap_internal_shards: Positive = 100
    """Shards of a server's hash map; PERSIA takes 1000 when the whole section is left out."""
    enable_incremental_update: bool = False
    """Writes changed embeddings continuously, for inference servers to load."""
    incremental_buffer_size: Positive = 1_000_000
    """Number of changed embeddings that are collected before they are written."""
    incremental_dir: str = "/workspace/incremental_dir/"
    """Folder that the changed embeddings are written to."""
    incremental_channel_capacity: Positive = 1000
    """Number of updates that may wait to be collected."""


class GlobalConfig(_Section):
    """`global_config.yaml`."""

    MISTAKEN = {
        "middleware_config": _renamed("embedding_worker_config"),
        "embedding_server_config": _renamed("embedding_parameter_server_config"),
        "metrics_config": _renamed("common_config: {metrics_config: …}"),
        "job_type": _renamed("common_config: {job_type: …}"),
    }

    common_config: CommonConfig = CommonConfig.model_construct()
    """Settings that parameter servers and embedding workers share."""
    embedding_worker_config: EmbeddingWorkerConfig = EmbeddingWorkerConfig.model_construct()
    """Buffers of the embedding workers."""
    embedding_parameter_server_config: EmbeddingParameterServerConfig = EmbeddingParameterServerConfig.model_construct()
    """Capacity and incremental updates of the parameter servers."""


class HashStackConfig(_Section):
    """Several small hashes instead of one large table; both numbers are required."""

    hash_stack_rounds: Count
    """Number of hashes per feature value; 0 turns the hash stack off."""
    embedding_size: Count
    """Number of rows of the hashed table."""


class SlotConfig(_Section):
    """One categorical feature."""

    MISTAKEN = {"sample_fix_sized": _renamed("sample_fixed_size")}

    dim: Positive
    """Length of the embedding vectors."""
    sample_fixed_size: Positive = 10
    """Number of values per sample when the embeddings are not summed."""
    embedding_summation: bool = True
    """Sums the embeddings of a sample's values into one vector."""
    sqrt_scaling: bool = False
    """Divides the sum by the square root of the number of values."""
    hash_stack_config: HashStackConfig = HashStackConfig(hash_stack_rounds=0, embedding_size=0)
    """Several small hashes instead of one large table; off by default."""
    index_prefix: Count = 0
    """Computed by PERSIA and refused here; leave it out."""


class EmbeddingConfig(_Section):
    """`embedding_config.yaml`; the order of groups and slots decides their prefixes, so it is kept."""

    MISTAKEN = {
        "slot_config": "PERSIA does not start without slots_config; write 'slots_config'",
        "slots_configs": "PERSIA does not start without slots_config; write 'slots_config'",
        "feature_group": _renamed("feature_groups"),
    }

    feature_index_prefix_bit: int = Field(default=8, ge=1, le=63)
    """Bits of a feature's index that hold the number of its group."""
    slots_config: dict[str, SlotConfig] = Field(min_length=1)
    """The categorical features, by name."""
    feature_groups: dict[str, list[str]] = Field(default={})
    """Features that share embeddings, as lists of slots by the group's name."""

    @property
    def group_count(self) -> int:
        """The number of groups that PERSIA numbers: the named ones, and one for each slot that is in none of them."""
        grouped = {slot for slots in self.feature_groups.values() for slot in slots}
        return len(self.feature_groups) + len(self.slots_config.keys() - grouped)

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        refuse([*self._slot_findings(), *self._group_findings()])
        return self

    def _slot_findings(self) -> Iterator[Finding]:
        for name, slot in self.slots_config.items():
            if slot.index_prefix:
                yield (
                    ("slots_config", name, "index_prefix"),
                    "PERSIA computes it from the slot's group and does not start if it is given; remove it",
                )

    def _group_findings(self) -> Iterator[Finding]:
        home: dict[str, str] = {}
        for group, slots in self.feature_groups.items():
            if group in self.slots_config:
                yield (
                    ("feature_groups", group),
                    "is also the name of a slot, so PERSIA would not start; rename the group",
                )
            for index, slot in enumerate(slots):
                if slot not in self.slots_config:
                    yield (
                        ("feature_groups", group, index),
                        f"slot {slot!r} is not in slots_config, so the group would be incomplete; "
                        "correct the name or add the slot",
                    )
                elif slot in home:
                    yield (
                        ("feature_groups", group, index),
                        f"slot {slot!r} is already in {home[slot]!r}, and PERSIA would silently use the last group; "
                        "keep it in one group",
                    )
                home.setdefault(slot, group)
        most = 2**self.feature_index_prefix_bit - 1
        count = self.group_count
        if count > most:
            yield (
                ("feature_index_prefix_bit",),
                f"{self.feature_index_prefix_bit} bits can number at most {most} groups, but there are {count} (each "
                "slot "
                "outside feature_groups is one), so prefixes would wrap around and features would share embeddings; "
                f"write at least {count.bit_length()}",
            )


def _content(value: Any) -> Any:  # noqa: ANN401
    """The mapping that a file's text contains; a mapping or model is returned unchanged."""
    if not isinstance(value, str):
        if not isinstance(value, Mapping | BaseModel):
            raise ValueError("must be the file's text, or its content as a mapping")
        return value
    try:
        documents = parse_documents(value)
    except yaml.MarkedYAMLError as error:
        line = f"line {error.problem_mark.line + 1} of the text " if error.problem_mark else ""
        raise ValueError(f"{line}is not valid YAML: {error.problem}") from None
    except (yaml.YAMLError, RecursionError):
        raise ValueError("is not valid YAML") from None
    if len(documents) != 1 or not isinstance(documents[0], Mapping):
        raise ValueError("must contain one YAML document, a mapping of keys to values")
    return documents[0]


def _ordered_content(value: Any) -> Any:  # noqa: ANN401
    """Refuses mappings whose order would be lost, because Pulumi sorts the keys of its configuration."""
    if isinstance(value, Mapping):
        for key in ("slots_config", "feature_groups"):
            inner = value.get(key)
            if isinstance(inner, Mapping) and list(inner) != sorted(inner, key=str):
                refuse(
                    [
                        (
                            (key,),
                            "is not in alphabetical order, but Pulumi sorts the keys of mappings, so features would "
                            "get other prefixes; write the file as text (after `|`), which keeps its order",
                        )
                    ]
                )
    return _content(value)


GlobalConfigFile = Annotated[GlobalConfig, BeforeValidator(_content)]
EmbeddingConfigFile = Annotated[EmbeddingConfig, BeforeValidator(_ordered_content)]
"""A configuration file as text, as a mapping, or as the model itself."""


def written(file: GlobalConfig | EmbeddingConfig) -> str:
    """The file's text: the given keys in their order, in a form that every YAML parser reads the same way."""
    content = file.model_dump(exclude_unset=True)
    return yaml.dump(content, Dumper=_DUMPER, sort_keys=False, default_flow_style=False, allow_unicode=True)
