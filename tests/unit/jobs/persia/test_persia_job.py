"""What a PERSIA job refuses, and what it derives from its description."""

from collections.abc import Callable
from typing import Any

import pytest
import yaml

from persia_infra.jobs import PersiaJobSpec
from persia_infra.stack import parse_environment
from tests.support.environments import assert_refused

Spoil = Callable[..., list[str]]
JOB = "f.yaml: environment.jobs.ads"
NO_DATA_VOLUME = tuple(
    f"{role}.volumeMounts[0].name: no volume 'data' is declared"
    for role in ("embeddingParameterServer", "embeddingWorker", "nnWorker", "dataloader")
)


def env(*names: str) -> list[dict[str, str]]:
    return [{"name": name, "value": "1"} for name in names]


@pytest.mark.parametrize(
    ("place", "value", "line"),
    [
        ("nnWorkers", {}, "nnWorkers: unknown key, which would have no effect; did you mean 'nnWorker'?"),
        (
            "dataLoader",
            {"replicas": 1},
            "dataLoader: unknown key, which would have no effect; did you mean 'dataloader'?",
        ),
        (
            "persiaEnv/PERSIA_NN_ENTRY",
            "/x",
            "persiaEnv.PERSIA_NN_ENTRY: unknown key, which would have no effect; did you mean 'PERSIA_NN_WORKER_ENTRY'",
        ),
        (
            "persiaEnv/PERSIA_GLOBAL_CONFIG",
            None,
            "persiaEnv.PERSIA_GLOBAL_CONFIG: is missing, and PERSIA does not start",
        ),
        (
            "persiaEnv/PERSIA_EMBEDDING_CONFIG",
            None,
            "persiaEnv.PERSIA_EMBEDDING_CONFIG: is missing, and PERSIA does not start",
        ),
        ("persiaEnv/PERSIA_NN_WORKER_ENTRY", None, "persiaEnv.PERSIA_NN_WORKER_ENTRY: is missing, so the nn-workers"),
        (
            "persiaEnv/PERSIA_DATALOADER_ENTRY",
            None,
            "persiaEnv.PERSIA_DATALOADER_ENTRY: is missing, so the dataloaders",
        ),
        ("globalConfig", {}, "globalConfig: cannot be combined with persiaEnv.PERSIA_GLOBAL_CONFIG"),
        (
            "embeddingConfig",
            "slots_config: {a: {dim: 8}}",
            "embeddingConfig: cannot be combined with persiaEnv.PERSIA_EMBEDDING_CONFIG",
        ),
        ("embeddingConfig", "", "embeddingConfig: must contain one YAML document, a mapping"),
        (
            "globalConfig",
            {"common_config": {"metrics_config": {"push_interval_sec": 10}}},
            "globalConfig.common_config.metrics_config.push_interval_sec: PERSIA does not read this key",
        ),
        (
            "embeddingConfig",
            {"slot_config": {}},
            "embeddingConfig.slot_config: PERSIA does not start without slots_config; write 'slots_config'",
        ),
        ("globalConfig", 7, "globalConfig: must be the file's text, or its content as a mapping"),
        ("nnWorker/replicas", -1, "nnWorker.replicas: must be greater than or equal to 0"),
        ("nnWorker/replicas", True, "nnWorker.replicas: must be a whole number"),
        ("dataloader/replicas", 10**30, "dataloader.replicas: is more than the 200000 pods that one GKE cluster"),
        ("nats", {"size": 3_000_000_000}, "nats.size: is more than the 200000 pods that one GKE cluster can run"),
        (
            "nats",
            {"natsConfig": {"write_deadline": "soon"}},
            "nats.natsConfig.write_deadline: is not a valid duration; write",
        ),
        (
            "nats",
            {"tls": {"serverSecret": "bus", "serverSecretCAFileName": 'ca"\n}'}},
            "nats.tls.serverSecretCAFileName: is not a valid key of a Secret; use letters",
        ),
        ("dataloader/image", "", "dataloader.image: is not a valid image name; write one such as"),
        ("nnWorker/image", "persia runtime", "nnWorker.image: is not a valid image name; write one such as"),
        ("nnWorker/image", "persia@sha256:abc", "nnWorker.image: is not a valid image name; write one such as"),
        ("persiaEnv/PERSIA_GLOBAL_CONFIG", "", "persiaEnv.PERSIA_GLOBAL_CONFIG: is empty"),
        ("logLevel", "loud", "logLevel: contains no level, so PERSIA would log only errors; write trace"),
        (
            "env",
            [{"name": "PERSIA_NATS_URL", "value": "http://bus"}],
            "env: PERSIA_NATS_URL is not a valid NATS address; write one such as nats://nats.example:4222",
        ),
        ("nnWorker/replicas", None, "nnWorker.replicas: is required and missing"),
        ("nnWorker/replicas", "two", "nnWorker.replicas: must be a whole number"),
        ("nnWorker/nprocPerNode", 0, "nnWorker.nprocPerNode: must be greater than or equal to 1"),
        ("nnWorker/nprocPerNode", 2, "nnWorker.nprocPerNode: is 2, but each pod has 1 GPU"),
        ("nnWorker/sharedMemory", "lots", "nnWorker.sharedMemory: 'lots' is not a Kubernetes quantity"),
        ("restartPolicy", "Sometimes", "restartPolicy: not one of the values it can have"),
        ("enableMetrics", "maybe", "enableMetrics: must be true or false"),
        ("env", env("A", "A"), "env[1].name: variable 'A' is given twice"),
        ("env", env("REPLICA_INDEX"), "env[0].name: REPLICA_INDEX differs from pod to pod and is set automatically"),
        ("nnWorker/env", env("RANK"), "nnWorker.env[0].name: RANK differs from pod to pod"),
        (
            "dataloader/env",
            env("PERSIA_NATS_IP"),
            "dataloader.env[0].name: PERSIA_NATS_URL for a single role would separate it from the others",
        ),
        (
            "env",
            env("PERSIA_SOCKET_NAME"),
            "env[0].name: PERSIA does not read this variable; write PERSIA_SOCKET_IFNAME",
        ),
        ("env", [{"name": "PERSIA_NATS_URL", "value": ""}], "env: PERSIA_NATS_URL is empty"),
        (
            "env",
            [{"name": "PERSIA_NATS_URL", "value": "nats://u@bus:4222"}],
            "env: PERSIA_NATS_URL contains a user, which PERSIA reads as part of the host name",
        ),
        ("trainer", {"replicas": 1}, "trainer: cannot be combined with nnWorker, the new name of the same field"),
        ("globalConfigPath", "/x", "globalConfigPath: cannot be combined with persiaEnv.PERSIA_GLOBAL_CONFIG"),
        ("nnWorker/script", "print()", "nnWorker.script: cannot be combined with persiaEnv.PERSIA_NN_WORKER_ENTRY"),
        ("embeddingWorker/script", "print()", "embeddingWorker.script: unknown key"),
        ("nnWorker/tolerations", [{"operator": "Equal"}], "nnWorker.tolerations[0].key: is missing"),
        ("nnWorker/securityContext", {"runAsUser": -1}, "nnWorker.securityContext.runAsUser: must be greater"),
        ("nnWorker/securityContext", {"runAsUser": 0}, "nnWorker.securityContext.runAsUser: 0 is root"),
        ("nnWorker/securityContext", {"runAsNonRoot": False}, "nnWorker.securityContext.runAsNonRoot: false asks for"),
        ("env", [{"name": "HUB_TOKEN", "value": "x"}], "env[0].value: the value of HUB_TOKEN looks like a secret"),
        (
            "nnWorker/env",
            [{"name": "DB", "value": "mysql://u:p@db"}],
            "nnWorker.env[0].value: the value of DB looks like a secret",
        ),
        ("nnWorker/sharedMemory", "-1Gi", "nnWorker.sharedMemory: leaves no room at all"),
        ("nnWorker/nodeName", "n", "nnWorker.nodeName: unknown key"),
        ("mode", "both", "mode: not one of the values it can have"),
        ("env", env("A B"), "env[0].name: is not a valid name of a variable"),
        ("env", [{"name": "A", "value": 1}], "env[0].value: must be text; put it in quotes"),
        (
            "env",
            [{"name": "A", "value": "1", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
            "env[0]: has both value and valueFrom",
        ),
        ("env", [{"name": "A", "valueFrom": {}}], "env[0].valueFrom: needs exactly one of secretKeyRef"),
        ("volumes", [], NO_DATA_VOLUME),
        ("volumes/0/hostPath", {"path": "/x"}, "volumes[0]: needs exactly one source; write one of hostPath"),
        ("volumes/0", {"name": "data"}, "volumes[0]: needs exactly one source"),
        (
            "volumes/0/name",
            "persia-config",
            ("volumes: 'persia-config' is reserved for a volume", *NO_DATA_VOLUME),
        ),
        (
            "nnWorker/volumeMounts",
            [{"name": "data", "mountPath": "/data"}, {"name": "data", "mountPath": "/data/"}],
            "nnWorker.volumeMounts[1].mountPath: /data is mounted twice (also by entry 0)",
        ),
        (
            "nnWorker/volumeMounts/0/mountPath",
            "data",
            "nnWorker.volumeMounts[0].mountPath: is not a valid absolute path",
        ),
        (
            "nnWorker/resources/requests",
            {"cpu": "5"},
            "nnWorker.resources.requests.cpu: 5 is more than the limit of 4, which Kubernetes refuses",
        ),
        (
            "dataloader/resources",
            {"requests": {"nvidia.com/gpu": 1}},
            "dataloader.resources.requests.nvidia.com/gpu: GPUs cannot be overcommitted",
        ),
        (
            "nnWorker/resources/limits/nvidia.com~gpu",
            0.5,
            "nnWorker.resources.limits.nvidia.com/gpu: 0.5 is not",
        ),
        ("nnWorker/resources/limits/memory", "16GB", "nnWorker.resources.limits.memory: '16GB' is not a Kubernetes"),
        ("nnWorker/resources/limits/memory", "-1Gi", "nnWorker.resources.limits.memory: -1Gi is negative"),
        ("nnWorker/resources/limits/memory", True, "nnWorker.resources.limits.memory: is not a quantity"),
        ("nats", {"size": 0}, "nats.size: must be greater than or equal to 1"),
        (
            "nats",
            {"natsConfig": {"maxPayload": 2**27}},
            "nats.natsConfig.maxPayload: nats-server does not start with more than",
        ),
        ("nats", {"natsConfig": {"max_paylod": 1}}, "nats.natsConfig.max_paylod: unknown key"),
        ("nats", {"resources": {}, "pod": {"resources": {}}}, "nats.resources: cannot be combined with pod.resources"),
        (
            "nats",
            {"natsConfig": {"writeDeadline": "2s"}},
            "nats.natsConfig.writeDeadline: the NATS operator ignores this spelling",
        ),
        ("nats", {"natsConfig": {"maxPending": 1024}}, "nats.natsConfig.maxPending: 1024 is less than maxPayload"),
        ("nats", {"pod": {"labels": {"app": "x"}}}, "nats.pod.labels.app: is a label that selects the server pods"),
        ("nats", {"tls": {"verify": True}}, "nats.tls.verify: requires certificates from clients"),
        ("nats", {"auth": {"clientsAuthSecret": "s"}}, "nats.auth: PERSIA's client cannot log in"),
        (
            "nats",
            {"mode": "operator", "jetstream": {"storage": "1Gi"}},
            "nats.jetstream: cannot be combined with mode: operator",
        ),
        ("nats", {"mode": "operator", "version": "2.10-alpine"}, "nats.version: the NATS operator starts"),
    ],
)
def test_a_wrong_value_in_a_persia_job_is_refused_with_exactly_the_expected_lines(
    spoiled: Spoil, place: str, value: Any, line: str | tuple[str, ...]
) -> None:
    said = spoiled(f"jobs/ads/{place}", value)

    assert_refused(said, line, prefix=f"{JOB}.")


def job(description: dict[str, Any], **changes: Any) -> PersiaJobSpec:
    found = parse_environment({**description, "jobs": {"ads": {**description["jobs"]["ads"], **changes}}}).jobs["ads"]
    assert isinstance(found, PersiaJobSpec)
    return found


def test_a_job_without_roles_is_refused(description: dict[str, Any], spoiled: Spoil) -> None:
    paths = description["jobs"]["ads"]["persiaEnv"]

    (said,) = spoiled("jobs/ads", {"kind": "PersiaJob", "persiaEnv": paths})

    assert said.startswith(f"{JOB}: has no role, so nothing would run")


def test_each_job_has_its_own_nats_of_three(description: dict[str, Any]) -> None:
    nats = job(description).own_nats

    assert nats is not None
    assert (nats.size, nats.nats_config.max_payload) == (3, 52428800)


def test_a_nats_url_of_its_own_replaces_the_jobs_nats(description: dict[str, Any]) -> None:
    found = job(description, env=[{"name": "PERSIA_NATS_URL", "value": "nats://elsewhere:4222"}])

    assert found.own_nats is None
    assert "nats" not in [load.role for load in found.workloads()]


def test_a_nats_that_would_not_be_used_is_refused(description: dict[str, Any], spoiled: Spoil) -> None:
    description["jobs"]["ads"]["nats"] = {"size": 1}

    (said,) = spoiled("jobs/ads/env", [{"name": "PERSIA_NATS_URL", "value": "nats://elsewhere:4222"}])

    assert said.startswith(f"{JOB}.nats: cannot be combined with PERSIA_NATS_URL in env")


def test_inline_files_keep_the_order_that_persia_minds(description: dict[str, Any]) -> None:
    description["jobs"]["ads"]["persiaEnv"].pop("PERSIA_GLOBAL_CONFIG")
    description["jobs"]["ads"]["persiaEnv"].pop("PERSIA_EMBEDDING_CONFIG")
    text = "slots_config:\n  b: {dim: 8}\n  a: {dim: 8}\n"

    found = job(description, globalConfig={"embedding_worker_config": {"forward_buffer_size": 7}}, embeddingConfig=text)

    assert list(yaml.safe_load(found.config_files["embedding_config.yaml"])["slots_config"]) == ["b", "a"]
    written = yaml.safe_load(found.config_files["global_config.yaml"])
    assert written == {"embedding_worker_config": {"forward_buffer_size": 7}}
    assert found.global_config_path == "/etc/persia/global_config.yaml"


def test_the_folder_of_inline_files_is_taken(description: dict[str, Any], spoiled: Spoil) -> None:
    found = description["jobs"]["ads"]
    found["persiaEnv"].pop("PERSIA_GLOBAL_CONFIG")
    found["globalConfig"] = {}

    (said,) = spoiled("jobs/ads/nnWorker/volumeMounts/0/mountPath", "/etc/persia/")

    assert said.startswith(f"{JOB}.nnWorker.volumeMounts[0].mountPath: /etc/persia is the folder of the inline")


def test_what_has_no_effect_is_reported(description: dict[str, Any]) -> None:
    found = job(description, restartPolicy="Never", nats={"resources": {"limits": {"memory": "2Gi"}}})

    assert [place for place, _ in found.notes()] == [("restartPolicy",), ("nats", "resources")]


def test_dialects_before_december_2021_mean_the_same(description: dict[str, Any]) -> None:
    todays = job(description, env=[{"name": "PERSIA_NATS_URL", "value": "nats://bus:4222"}])
    old = description["jobs"]["ads"]
    paths = old.pop("persiaEnv")
    old["globalConfigPath"] = paths["PERSIA_GLOBAL_CONFIG"]
    old["embeddingConfigPath"] = paths["PERSIA_EMBEDDING_CONFIG"]
    old["trainerPyEntryPath"] = paths["PERSIA_NN_WORKER_ENTRY"]
    old["dataLoaderPyEntryPath"] = paths["PERSIA_DATALOADER_ENTRY"]
    for new, before in (
        ("nnWorker", "trainer"),
        ("embeddingWorker", "middlewareServer"),
        ("embeddingParameterServer", "embeddingServer"),
    ):
        old[before] = old.pop(new)
    old["env"] = [{"name": "PERSIA_NATS_IP", "value": "nats://bus:4222"}]
    old["logLevel"] = None

    found = job(description)

    assert found.model_dump() == todays.model_dump()
    assert [place for place, _ in found.notes()] == [
        ("globalConfigPath",),
        ("embeddingConfigPath",),
        ("trainerPyEntryPath",),
        ("dataLoaderPyEntryPath",),
        ("embeddingServer",),
        ("middlewareServer",),
        ("trainer",),
        ("env", 0, "name"),
    ]


@pytest.mark.parametrize(
    ("place", "value", "line"),
    [
        ("trainer/replicas", -1, "trainer.replicas: must be greater than or equal to 0"),
        ("trainer/nodeName", "n", "trainer.nodeName: unknown key"),
        ("trainer/pool", "tpu", "trainer.pool: there is no pool 'tpu'"),
        ("trainer/profile", "big", "trainer.profile: the environment has no profile 'big'"),
        ("trainer/env", env("RANK"), "trainer.env[0].name: RANK differs from pod to pod"),
        ("globalConfigPath", "", "globalConfigPath: is empty"),
        ("dataloader/replicas", True, "dataloader.replicas: must be a whole number"),
    ],
)
def test_errors_in_an_old_dialect_name_the_keys_of_that_dialect(
    description: dict[str, Any], spoiled: Spoil, place: str, value: Any, line: str
) -> None:
    old = description["jobs"]["ads"]
    old["trainer"] = old.pop("nnWorker")
    old["globalConfigPath"] = old["persiaEnv"].pop("PERSIA_GLOBAL_CONFIG")

    (said,) = spoiled(f"jobs/ads/{place}", value)

    assert said.startswith(f"{JOB}.{line}")


def test_read_only_as_the_old_documentation_spells_it_takes_effect_and_is_reported(description: dict[str, Any]) -> None:
    mount = description["jobs"]["ads"]["nnWorker"]["volumeMounts"][0]
    mount["read_only"] = True

    found = job(description)

    assert found.nn_worker is not None
    assert found.nn_worker.volume_mounts[0].read_only is True
    assert [place for place, _ in found.notes()] == [("nnWorker", "volumeMounts", 0, "read_only")]


def test_variables_that_persia_does_not_read_are_reported(description: dict[str, Any]) -> None:
    found = job(description, env=env("PERSIA_MODEL_CONFIG"))

    assert [place for place, _ in found.notes()] == [("env", 0, "name")]


@pytest.mark.parametrize(
    ("role", "field", "value"),
    [
        ("dataloader", "pool", "cpu"),
        ("nnWorker", "tolerations", [{"operator": "Exists"}]),
        ("nnWorker", "affinity", {"nodeAffinity": {}}),
        ("nnWorker", "serviceAccountName", "trainer"),
        ("nnWorker", "priorityClassName", "high"),
        ("nnWorker", "nodeSelector", {"disk": "ssd"}),
        ("nnWorker", "securityContext", {"runAsUser": 1000}),
    ],
)
def test_what_the_operator_has_no_words_for_is_refused(
    description: dict[str, Any], spoiled: Spoil, role: str, field: str, value: Any
) -> None:
    description["jobs"]["ads"]["mode"] = "operator"

    (said,) = spoiled(f"jobs/ads/{role}/{field}", value)

    assert said.startswith(f"{JOB}.{role}.{field}: the PERSIA operator has no field for it")


def test_a_volume_that_the_operators_definition_drops_is_refused(description: dict[str, Any], spoiled: Spoil) -> None:
    description["jobs"]["ads"]["mode"] = "operator"

    (said,) = spoiled("jobs/ads/volumes/0", {"name": "data", "image": {"reference": "data:1"}})

    assert said.startswith(f"{JOB}.volumes[0].image: is newer than the PersiaJob resource definition, which drops it")


def test_files_that_no_config_map_holds_are_refused(description: dict[str, Any], spoiled: Spoil) -> None:
    paths = description["jobs"]["ads"]["persiaEnv"]
    paths.pop("PERSIA_NN_WORKER_ENTRY")
    paths.pop("PERSIA_EMBEDDING_CONFIG")
    slots = {"s" * (8000 + index): {"dim": 8} for index in range(200)}
    description["jobs"]["ads"]["embeddingConfig"] = {"slots_config": slots}

    said = spoiled("jobs/ads/nnWorker/script", "#" * 2**21)

    assert [line.partition(" is larger")[0] for line in said] == [
        f"{JOB}.embeddingConfig: together with globalConfig",
        f"{JOB}.nnWorker.script:",
    ]


def test_what_tls_needs_of_the_image_is_reported(description: dict[str, Any]) -> None:
    found = job(description, nats={"tls": {"serverSecret": "bus-tls"}})

    assert [place for place, _ in found.notes()] == [("nats", "tls")]


@pytest.mark.parametrize(
    ("place", "value", "line"),
    [
        (
            "mode",
            "operator",
            "with mode: operator the PERSIA operator creates its pods, but the environment does not install it",
        ),
        (
            "nats",
            {"mode": "operator"},
            "with nats.mode: operator the NATS operator creates its",
        ),
        ("gang", True, "its pods wait for Volcano to schedule them, but the environment does not install it"),
    ],
)
def test_a_persia_job_whose_operator_is_not_installed_is_refused(
    spoiled: Spoil, place: str, value: Any, line: str
) -> None:
    (said,) = spoiled(f"jobs/ads/{place}", value)

    assert said.startswith(f"{JOB}: {line}")
