"""PERSIA's two configuration files, `global_config` and `embedding_config`, with the limits its servers have.

PERSIA reads both with unknown keys ignored, so a misspelt one silently leaves the default in place; here it is
an error. What is left out stays out: PERSIA's own defaults apply, and they are not repeated in the file.
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
    """A part of a file; keys are spelt as PERSIA spells them, and numbers are not taken from text."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, hide_input_in_errors=True)

    MISTAKEN: ClassVar[Mapping[str, str]] = {}
    """Keys that older releases, PERSIA's examples or its documentation have here, and what to do about each."""

    @model_validator(mode="before")
    @classmethod
    def _refuse_mistaken_keys(cls, data: Any) -> Any:  # noqa: ANN401
        if isinstance(data, Mapping):
            refuse(((key,), said) for key, said in cls.MISTAKEN.items() if key in data)
        return data


def _renamed(now: str) -> str:
    return f"PERSIA does not read this key, so its default would apply; write {now!r}"


class MetricsConfig(_Section):
    """What the servers report to the metrics gateway."""

    MISTAKEN = {"push_interval_sec": _renamed("push_interval_seconds")}

    enable_metrics: bool = True
    job_name: str = "persia_default_jobname"
    push_interval_seconds: Positive = 10


class InferConfig(_Section):
    """Where inference finds the parameter servers and the embeddings; both are needed once one is given."""

    servers: list[str]
    embedding_checkpoint: str


class CheckpointingConfig(_Section):
    """How checkpoints are written and read."""

    num_workers: Positive = 4


class CommonConfig(_Section):
    """What parameter servers and embedding workers share."""

    MISTAKEN = {
        "intent": _renamed("job_type"),
        "num_embedding_io_workers": _renamed("checkpointing_config: {num_workers: …}"),
        "initial_sparse_checkpoint": _renamed("infer_config: {embedding_checkpoint: …}"),
        "servers": _renamed("infer_config: {servers: […]}"),
    }

    metrics_config: MetricsConfig = MetricsConfig()
    job_type: Literal["Train", "Eval", "Infer"] = "Train"
    infer_config: InferConfig | None = None
    checkpointing_config: CheckpointingConfig = CheckpointingConfig()

    @model_validator(mode="after")
    def _inference_has_servers(self) -> Self:
        if self.job_type == "Infer" and not (self.infer_config and self.infer_config.servers):
            refuse(
                [
                    (
                        ("infer_config",),
                        "names no servers, and with job_type Infer the embedding workers dial those alone; "
                        "list the parameter servers as host:port under infer_config: {servers: […]}",
                    )
                ]
            )
        return self


class EmbeddingWorkerConfig(_Section):
    """Buffers of the embedding workers."""

    forward_buffer_size: Positive = 1000
    buffered_data_expired_sec: Positive = 1000


class EmbeddingParameterServerConfig(_Section):
    """Size and incremental updates of each parameter server."""

    MISTAKEN = {
        "full_amount_manager_buffer_size": "no PERSIA reads this key any more; remove it",
        "num_hashmap_internal_shard": _renamed("num_hashmap_internal_shards"),
    }

    capacity: Positive = 1_000_000_000
    """Embedding vectors, not parameters, that one server holds."""
    num_hashmap_internal_shards: Positive = 100
    """PERSIA itself takes 1000 instead when the whole section is left out."""
    enable_incremental_update: bool = False
    incremental_buffer_size: Positive = 1_000_000
    incremental_dir: str = "/workspace/incremental_dir/"
    incremental_channel_capacity: Positive = 1000


class GlobalConfig(_Section):
    """`global_config.yaml`."""

    MISTAKEN = {
        "middleware_config": _renamed("embedding_worker_config"),
        "embedding_server_config": _renamed("embedding_parameter_server_config"),
        "metrics_config": _renamed("common_config: {metrics_config: …}"),
        "job_type": _renamed("common_config: {job_type: …}"),
    }

    common_config: CommonConfig = CommonConfig()
    embedding_worker_config: EmbeddingWorkerConfig = EmbeddingWorkerConfig()
    embedding_parameter_server_config: EmbeddingParameterServerConfig = EmbeddingParameterServerConfig()


class HashStackConfig(_Section):
    """Several small hashes in place of one large table; both numbers are needed once one is given."""

    hash_stack_rounds: Count
    embedding_size: Count


class SlotConfig(_Section):
    """One categorical feature."""

    MISTAKEN = {"sample_fix_sized": _renamed("sample_fixed_size")}

    dim: Positive
    sample_fixed_size: Positive = 10
    embedding_summation: bool = True
    sqrt_scaling: bool = False
    hash_stack_config: HashStackConfig = HashStackConfig(hash_stack_rounds=0, embedding_size=0)
    index_prefix: Count = 0


class EmbeddingConfig(_Section):
    """`embedding_config.yaml`; the order of groups and slots decides their prefixes, so it is kept."""

    MISTAKEN = {
        "slot_config": "PERSIA stops without slots_config; write 'slots_config'",
        "slots_configs": "PERSIA stops without slots_config; write 'slots_config'",
        "feature_group": _renamed("feature_groups"),
    }

    feature_index_prefix_bit: int = Field(default=8, ge=1, le=63)
    slots_config: dict[str, SlotConfig] = Field(min_length=1)
    feature_groups: dict[str, list[str]] = Field(default={})

    @property
    def group_count(self) -> int:
        """Groups that PERSIA numbers: the named ones, and one for each slot that is in none of them."""
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
                    "PERSIA computes it from the slot's group and stops when it is given; remove it",
                )

    def _group_findings(self) -> Iterator[Finding]:
        home: dict[str, str] = {}
        for group, slots in self.feature_groups.items():
            if group in self.slots_config:
                yield (
                    ("feature_groups", group),
                    "is the name of a slot as well, at which PERSIA stops; rename the group",
                )
            for index, slot in enumerate(slots):
                if slot not in self.slots_config:
                    yield (
                        ("feature_groups", group, index),
                        f"no slot {slot!r} is in slots_config, so the group would not be what it seems; "
                        "correct the name or add the slot",
                    )
                elif slot in home:
                    yield (
                        ("feature_groups", group, index),
                        f"slot {slot!r} is in {home[slot]!r} already, and the last one would silently win; "
                        "keep it in one group",
                    )
                home.setdefault(slot, group)
        most = 2**self.feature_index_prefix_bit - 1
        count = self.group_count
        if count > most:
            yield (
                ("feature_index_prefix_bit",),
                f"{self.feature_index_prefix_bit} bits number at most {most} groups, but there are {count} (each slot "
                "outside feature_groups is one), so prefixes would wrap and features share embeddings; "
                f"write at least {count.bit_length()}",
            )


def _content(value: Any) -> Any:  # noqa: ANN401
    """The mapping that a file's text holds; anything else as it is."""
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
        raise ValueError("must hold one YAML document, a mapping of keys to values")
    return documents[0]


def _ordered_content(value: Any) -> Any:  # noqa: ANN401
    """Refuses mappings whose order would be lost on the way through Pulumi, which sorts the keys of its values."""
    if isinstance(value, Mapping):
        for key in ("slots_config", "feature_groups"):
            inner = value.get(key)
            if isinstance(inner, Mapping) and list(inner) != sorted(inner, key=str):
                refuse(
                    [
                        (
                            (key,),
                            "is not in alphabetical order, which Pulumi's configuration puts mappings into, so "
                            "features would get other prefixes than here; give the file as text (after `|`), whose "
                            "order is kept",
                        )
                    ]
                )
    return _content(value)


GlobalConfigFile = Annotated[GlobalConfig, BeforeValidator(_content)]
EmbeddingConfigFile = Annotated[EmbeddingConfig, BeforeValidator(_ordered_content)]
"""A file as its text, as a mapping, or as the model itself."""


def written(file: GlobalConfig | EmbeddingConfig) -> str:
    """The file's text: what was described, in its order, in a form that all YAML readers take alike."""
    content = file.model_dump(exclude_unset=True)
    return yaml.dump(content, Dumper=_DUMPER, sort_keys=False, default_flow_style=False, allow_unicode=True)
