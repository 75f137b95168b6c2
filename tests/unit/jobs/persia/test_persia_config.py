"""PERSIA's configuration files: what PERSIA would ignore or trip over is said before it runs."""

from typing import Any

import pytest
import yaml
from pydantic import BaseModel, ValidationError

from persia_infra.jobs.persia.config import EmbeddingConfigFile, GlobalConfigFile, written
from persia_infra.spec.errors import problems_from


class Files(BaseModel):
    g: GlobalConfigFile | None = None
    e: EmbeddingConfigFile | None = None


def said(**files: Any) -> list[str]:
    try:
        Files.model_validate(files)
    except ValidationError as error:
        return [str(problem) for problem in problems_from(error, Files, files)]
    return []


SLOT: dict[str, Any] = {"dim": 8}


@pytest.mark.parametrize(
    ("content", "line"),
    [
        (
            {"common_config": {"metrics_config": {"push_interval_sec": 10}}},
            "common_config.metrics_config.push_interval_sec: PERSIA does not read this key, so its default would "
            "apply; write 'push_interval_seconds'",
        ),
        (
            {"common_config": {"metrics_config": {"enable_metric": True}}},
            "common_config.metrics_config.enable_metric: unknown key, which would have no effect; did you mean "
            "'enable_metrics'?",
        ),
        ({"common_config": {"intent": "Train"}}, "common_config.intent: PERSIA does not read this key"),
        ({"common_config": {"job_type": "train"}}, "common_config.job_type: not one of the values it can have"),
        ({"common_config": {"job_type": "Infer"}}, "common_config.infer_config: lists no servers"),
        (
            {"common_config": {"infer_config": {"servers": []}}},
            "common_config.infer_config.embedding_checkpoint: is required and missing",
        ),
        (
            {"common_config": {"num_embedding_io_workers": 4}},
            "common_config.num_embedding_io_workers: PERSIA does not read this key",
        ),
        ({"middleware_config": {}}, "middleware_config: PERSIA does not read this key"),
        ({"embedding_server_config": {}}, "embedding_server_config: PERSIA does not read this key"),
        (
            {"embedding_parameter_server_config": {"capacity": "1000"}},
            "embedding_parameter_server_config.capacity: must be a whole number",
        ),
        (
            {"embedding_parameter_server_config": {"capacity": 2**64}},
            "embedding_parameter_server_config.capacity: must",
        ),
        (
            {"embedding_parameter_server_config": {"full_amount_manager_buffer_size": 1}},
            "embedding_parameter_server_config.full_amount_manager_buffer_size: current versions of PERSIA do not read "
            "this key",
        ),
        ({"embedding_worker_config": {"forward_buffer_size": -1}}, "embedding_worker_config.forward_buffer_size: must"),
        ("common_config: [", "of the text is not valid YAML"),
        ("common_config: {}\ncommon_config: {}", "line 2 of the text is not valid YAML: the key 'common_config'"),
        ("just words", "must contain one YAML document, a mapping"),
        (7, "must be the file's text, or its content as a mapping"),
    ],
)
def test_global_config_is_refused(content: Any, line: str) -> None:
    found = said(g=content)

    assert len(found) == 1, found
    assert line in found[0]
    assert found[0].startswith("g")


@pytest.mark.parametrize(
    ("content", "line"),
    [
        (
            {"slot_config": {"a": SLOT}},
            "e.slot_config: PERSIA does not start without slots_config; write 'slots_config'",
        ),
        ({}, "e.slots_config: is required and missing"),
        ({"slots_config": {}}, "e.slots_config: is empty"),
        ({"slots_config": {"a": {}}}, "e.slots_config.a.dim: is required and missing"),
        ({"slots_config": {"a": {"dim": 0}}}, "e.slots_config.a.dim: must be greater than or equal to 1"),
        ({"slots_config": {"a": {"dims": 8, "dim": 8}}}, "e.slots_config.a.dims: unknown key"),
        ({"slots_config": {"a": {"dim": 8, "index_prefix": 1}}}, "e.slots_config.a.index_prefix: PERSIA computes it"),
        (
            {"slots_config": {"a": {"dim": 8, "hash_stack_config": {"hash_stack_rounds": 2}}}},
            "e.slots_config.a.hash_stack_config.embedding_size: is required and missing",
        ),
        (
            {"slots_config": {"a": SLOT}, "feature_groups": {"a": ["a"]}},
            "e.feature_groups.a: is also the name of a slot",
        ),
        (
            {"slots_config": {"a": SLOT}, "feature_groups": {"g": ["b"]}},
            "e.feature_groups.g[0]: slot 'b' is not in slots_config",
        ),
        (
            {"slots_config": {"a": SLOT}, "feature_groups": {"g": ["a"], "h": ["a"]}},
            "e.feature_groups.h[0]: slot 'a' is already in 'g'",
        ),
        ({"feature_index_prefix_bit": 0, "slots_config": {"a": SLOT}}, "e.feature_index_prefix_bit: must be greater"),
        ({"feature_index_prefix_bit": 64, "slots_config": {"a": SLOT}}, "e.feature_index_prefix_bit: must be less"),
        (
            {"feature_index_prefix_bit": 1, "slots_config": {"a": SLOT, "b": SLOT}},
            "e.feature_index_prefix_bit: 1 bits can number at most 1 groups, but there are 2",
        ),
        ({"slots_config": {"b": SLOT, "a": SLOT}}, "e.slots_config: is not in alphabetical order"),
        ("slots_config:\n  1: {dim: 8}\n", "e.slots_config[1]: must be text; put it in quotes"),
    ],
)
def test_embedding_config_is_refused(content: Any, line: str) -> None:
    found = said(e=content)

    assert len(found) == 1, found
    assert found[0].startswith(line), found


def test_as_many_groups_as_the_bits_can_number_are_fine() -> None:
    slots = {f"s{index:03}": SLOT for index in range(256)}

    assert said(e={"slots_config": slots, "feature_groups": {"g": ["s000", "s001"]}}) == []
    assert "write at least 9" in said(e={"slots_config": slots})[0]


def test_order_and_values_survive_and_defaults_are_not_added() -> None:
    slots = "slots_config:\n  zebra: {dim: 8}\n  'no': {dim: 4, sqrt_scaling: true}\n"
    text = slots + "feature_groups: {z: [zebra], a: ['no']}\n"

    file = Files.model_validate({"e": text}).e

    assert file is not None
    again = yaml.safe_load(written(file))
    assert again == yaml.safe_load(text)
    assert list(again["slots_config"]) == ["zebra", "no"]
    assert list(again["feature_groups"]) == ["z", "a"]


def test_the_whole_global_config_is_taken() -> None:
    content = {
        "common_config": {
            "metrics_config": {"enable_metrics": False, "job_name": "ads", "push_interval_seconds": 5},
            "job_type": "Infer",
            "infer_config": {"servers": ["ps-0:8888"], "embedding_checkpoint": "/ckpt"},
            "checkpointing_config": {"num_workers": 8},
        },
        "embedding_worker_config": {"forward_buffer_size": 10, "buffered_data_expired_sec": 20},
        "embedding_parameter_server_config": {
            "capacity": 10,
            "num_hashmap_internal_shards": 1,
            "enable_incremental_update": True,
            "incremental_buffer_size": 1,
            "incremental_dir": "/inc",
            "incremental_channel_capacity": 1,
        },
    }

    file = Files.model_validate({"g": content}).g

    assert file is not None
    assert yaml.safe_load(written(file)) == content
