"""Settings of runs: both spellings, what they become, and what is refused."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from persia_infra.jobs.settings.pods import final_pod
from persia_infra.jobs.settings.profiles import over
from persia_infra.jobs.settings.run_settings import RunSettings
from persia_infra.kube.pod_templates import SHARED_MEMORY, PodTemplate
from persia_infra.spec.errors import problems_from
from tests.support.environments import assert_refused

TEMPLATE = PodTemplate.model_validate({"spec": {"containers": [{"name": "main", "image": "example/train:1"}]}})


_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_WITHOUT_VALUES = {"key": "disk", "operator": "In"}


def read(**given: Any) -> RunSettings:
    return RunSettings.model_validate(given)


def pod(run: RunSettings) -> dict[str, Any]:
    template, _ = final_pod(TEMPLATE, run, job="j")
    return template.as_kubernetes()


def main(run: RunSettings) -> dict[str, Any]:
    return pod(run)["spec"]["containers"][0]


def said(data: dict[str, Any]) -> list[str]:
    try:
        RunSettings.model_validate(data)
    except ValidationError as error:
        return [str(problem) for problem in problems_from(error, RunSettings, data)]
    return []


def volume(kind: str, **spec: Any) -> dict[str, Any]:
    return {"volume_type": kind, "name": "v", "mount_path": "/v", "spec": spec}


@pytest.mark.parametrize(
    ("platform", "kubernetes"),
    [
        ({"node_selector": [{"key": "a", "value": "b"}]}, {"nodeSelector": {"a": "b"}}),
        (
            {"resources": {"cpu": {"requests": "8"}, "mem": {"requests": "32Gi"}, "gpu": {"limits": "1"}}},
            {"resources": {"requests": {"cpu": 8, "memory": "32Gi"}, "limits": {"nvidia.com/gpu": 1}}},
        ),
        ({"envs": [{"name": "A", "value": "1"}]}, {"env": [{"name": "A", "value": "1"}]}),
        ({"run_as_user": 1000, "run_as_group": 5, "fs_group": 7}, {"runAsUser": 1000, "runAsGroup": 5, "fsGroup": 7}),
        (
            {"volumes": [volume("empty_dir", medium="Memory", size_limit="1Gi")]},
            {
                "volumes": [{"name": "v", "emptyDir": {"medium": "Memory", "sizeLimit": "1Gi"}}],
                "volumeMounts": [{"name": "v", "mountPath": "/v"}],
            },
        ),
        (
            {"volumes": [volume("config_map", name="c")]},
            {"volumes": [{"name": "v", "mountPath": "/v", "configMap": {"name": "c"}}]},
        ),
        (
            {"volumes": [volume("secret", name="s")]},
            {"volumes": [{"name": "v", "mountPath": "/v", "secret": {"secretName": "s"}}]},
        ),
        (
            {"volumes": [volume("host_path", path="/data")]},
            {"volumes": [{"name": "v", "mountPath": "/v", "hostPath": {"path": "/data"}}]},
        ),
        (
            {"volumes": [volume("persistent_volume_claim", claim_name="c")]},
            {"volumes": [{"name": "v", "mountPath": "/v", "persistentVolumeClaim": {"claimName": "c"}}]},
        ),
        (
            {"volumes": [volume("persistentVolumeClaim", claimName="c")]},
            {"volumes": [volume("persistent_volume_claim", claim_name="c")]},
        ),
        (
            {"volumes": [volume("nfs", server="10.0.0.2", path="/x")]},
            {"volumes": [{"name": "v", "mountPath": "/v", "nfs": {"server": "10.0.0.2", "path": "/x"}}]},
        ),
    ],
)
def test_both_spellings_make_the_same_pod(platform: dict[str, Any], kubernetes: dict[str, Any]) -> None:
    assert pod(read(**platform)) == pod(read(**kubernetes))


def test_a_claim_with_a_size_is_a_disk_of_the_pod() -> None:
    run = read(volumes=[volume("persistent_volume_claim", size="10Gi", storage_class="premium-rwo")])

    assert pod(run)["spec"]["volumes"] == [
        {
            "name": "v",
            "ephemeral": {
                "volumeClaimTemplate": {
                    "spec": {
                        "accessModes": ["ReadWriteOnce"],
                        "resources": {"requests": {"storage": "10Gi"}},
                        "storageClassName": "premium-rwo",
                    }
                }
            },
        }
    ]


def test_a_share_is_mounted_through_a_claim_of_its_own() -> None:
    (one,) = read(volumes=[{**volume("nfs", server="10.0.0.2", path="/x"), "read_only": True}]).volumes
    share = one.share("j")

    assert share is not None
    assert (share.name, share.server, share.path, share.read_only) == ("j-v", "10.0.0.2", "/x", True)
    assert one.source("j").persistent_volume_claim is not None


def test_a_bucket_needs_gkes_annotation() -> None:
    found = pod(read(volumes=[volume("gcs_fuse", bucket="my-data", only_dir="train")]))

    assert found["metadata"]["annotations"] == {"gke-gcsfuse/volumes": "true"}
    source = found["spec"]["volumes"][0]["csi"]
    assert source["driver"] == "gcsfuse.csi.storage.gke.io"
    assert source["volumeAttributes"] == {"bucketName": "my-data", "mountOptions": "implicit-dirs,only-dir=train"}


def test_secrets_become_variables_by_reference() -> None:
    found = main(read(secrets=["my-secret", {"name": "hub", "key": "token", "env": "HUB_TOKEN"}]))

    assert found["envFrom"] == [{"secretRef": {"name": "my-secret"}}]
    assert found["env"] == [
        {"name": "HUB_TOKEN", "valueFrom": {"secretKeyRef": {"name": "hub", "key": "token"}}},
    ]


def test_a_user_of_its_own_confines_the_pod() -> None:
    found = pod(read(run_as_user=1000))["spec"]

    assert found["securityContext"] == {
        "runAsUser": 1000,
        "runAsNonRoot": True,
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    assert found["containers"][0]["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
    }


def test_nothing_asked_changes_nothing() -> None:
    assert pod(read()) == TEMPLATE.as_kubernetes()


@pytest.mark.parametrize(
    ("data", "line"),
    [
        ({"node_selector": [{"key": "a"}]}, "node_selector: entry 0 needs exactly the keys key and value"),
        (
            {"node_selector": [{"key": "a", "value": "1"}, {"key": "a", "value": "2"}]},
            "node_selector: the key 'a' is given twice",
        ),
        ({"node_selector": {"a": 1}}, "node_selector.a: must be text; put it in quotes"),
        ({"nodeSelectors": {}}, "nodeSelectors: unknown key, which would have no effect; did you mean 'nodeSelector'?"),
        (
            {"resources": {"cpu": {"requests": "10", "limits": "8"}}},
            "resources.cpu.requests: 10 is more than the limit",
        ),
        ({"resources": {"mem": {"limits": "64 GB"}}}, "resources.mem.limits: '64 GB' is not a Kubernetes quantity"),
        ({"resources": {"mem": {"limits": "-1Gi"}}}, "resources.mem.limits: -1Gi is negative"),
        ({"resources": {"gpu": {"limits": "0.5"}}}, "resources.gpu.limits: 0.5 is not a whole number of GPUs"),
        ({"resources": {"gpu": {"requests": "1"}}}, "resources.gpu.requests: GPUs cannot be overcommitted"),
        ({"resources": {"mem": {}, "memory": {}}}, "resources.mem: is another spelling of memory"),
        (
            {"resources": {"cpu": {"limits": 1}, "limits": {"cpu": 2}}},
            "resources.cpu.limits: is also given as limits.cpu",
        ),
        ({"resources": {"tpu": {"limits": 1}}}, "resources.tpu: unknown key"),
        ({"resources": {"cpu": 4}}, "resources.cpu: must be a mapping of keys to values"),
        ({"secrets": ["PASSWORD=hunter2"]}, "secrets[0]: is not a valid name of a Secret"),
        ({"secrets": [{"name": "x", "value": "hunter2"}]}, "secrets[0]: must not contain a secret's value"),
        ({"secrets": [{"name": "x", "key": "k"}]}, "secrets[0]: needs both key (of the Secret) and env"),
        ({"secrets": [7]}, "secrets[0]: must be the name of a Secret"),
        ({"envs": [{"name": "A", "value": 1}]}, "envs[0].value: must be text; put it in quotes"),
        ({"envs": [{"name": "A", "value": "1"}, {"name": "A", "value": "2"}]}, "envs[1].name: variable 'A' is given"),
        ({"env": [{"name": "A"}], "envs": [{"name": "B"}]}, "env: is another spelling of envs"),
        (
            {"envs": [{"name": "DB_PASSWORD", "value": "hunter2"}]},
            "envs[0].value: the value of DB_PASSWORD looks like a secret",
        ),
        (
            {"envs": [{"name": "T", "value": "1"}], "secrets": [{"name": "x", "key": "k", "env": "T"}]},
            "secrets[0].env: variable 'T' is given twice",
        ),
        ({"run_as_user": 0}, "run_as_user: 0 is root, which runs are not allowed to be"),
        ({"runAsGroup": 0}, "runAsGroup: 0 is root"),
        ({"fs_group": 0}, "fs_group: 0 is root"),
        ({"run_as_user": -1}, "run_as_user: must be greater than or equal to 0"),
        ({"run_as_user": "me"}, "run_as_user: must be a whole number"),
        ({"run_as_user": True}, "run_as_user: must be a whole number"),
        ({"run_as_user": 2**40}, "run_as_user: is too large for a user or group"),
        (
            {"envs": [{"name": "DB", "value": "postgres://u:hunter2@db/runs"}]},
            "envs[0].value: the value of DB looks like a secret",
        ),
        ({"secrets": [{"name": "X Y"}]}, "secrets[0].name: is not a valid name of a Kubernetes object"),
        ({"resources": {"mem": {"limits": "1e100"}}}, "resources.mem.limits: is more than Kubernetes can count"),
        ({"resources": {"cpu": {"requests": "1e-400"}}}, "resources.cpu.requests: is finer than a billionth"),
        ({"resources": {"limits": {"memory": 1e100}}}, "resources.limits.memory: is more than Kubernetes can count"),
        ({"shared_memory": "-1Gi"}, "shared_memory: leaves no room at all"),
        ({"volumes": [volume("empty_dir", size_limit="0")]}, "volumes[0].spec.size_limit: leaves no room at all"),
        ({"volumes": [volume("persistent_volume_claim", size="0")]}, "volumes[0].spec.size: leaves no room at all"),
        (
            {"volumes": [volume("persistent_volume_claim", size="1Gi", storage_class="Fast One")]},
            "volumes[0].spec.storage_class: is not a valid name of a Kubernetes object",
        ),
        (
            {"volumes": [volume("config_map", name="A b")]},
            "volumes[0].spec.name: is not a valid name",
        ),
        ({"volumes": [volume("host_path", path="data")]}, "volumes[0].spec.path: is not a valid absolute path"),
        ({"volumes": [volume("host_path", path="/a/../b")]}, "volumes[0].spec.path: has '..' in it"),
        (
            {"volumes": [volume("host_path", path="/a", type="Folder")]},
            "volumes[0].spec.type: not one of the values it can have",
        ),
        (
            {"volumes": [volume("nfs", server="a b", path="/")]},
            "volumes[0].spec.server: is not a valid server name",
        ),
        (
            {"volumes": [{"name": "v", "mountPath": "/v", "nfs": {"server": "a", "path": "x"}}]},
            "volumes[0].nfs.path: is not a valid absolute path",
        ),
        ({"volumes": [{**volume("empty_dir"), "sub_path": "/a"}]}, "volumes[0].sub_path: must be a path below"),
        ({"volumes": [{**volume("empty_dir"), "sub_path": "a/../.."}]}, "volumes[0].sub_path: has '..' in it"),
        (
            {"volumes": [volume("empty_dir"), {**volume("empty_dir"), "name": "w", "mount_path": "//v"}]},
            "volumes[1].mount_path: /v is mounted twice (also by v)",
        ),
        (
            {"affinity": {"nodeAffinity": {"requiredDuringScheduling": {}}}},
            "affinity.nodeAffinity.requiredDuringScheduling: unknown key",
        ),
        (
            {"affinity": {"podAffinity": {_REQUIRED: [{"topologyKey": "zone", "labelSelector": {"app": "x"}}]}}},
            f"affinity.podAffinity.{_REQUIRED}[0].labelSelector.app: unknown key",
        ),
        (
            {
                "affinity": {
                    "nodeAffinity": {_REQUIRED: {"nodeSelectorTerms": [{"matchExpressions": [_WITHOUT_VALUES]}]}}
                }
            },
            f"affinity.nodeAffinity.{_REQUIRED}.nodeSelectorTerms[0].matchExpressions[0].values: are missing",
        ),
        ({"tolerations": [{"operator": "Exists", "value": "x"}]}, "tolerations[0].value: cannot be combined with"),
        ({"tolerations": [{"value": "x"}]}, "tolerations[0].key: is missing, which only operator Exists allows"),
        ({"tolerations": [{"key": "a", "effect": "Never"}]}, "tolerations[0].effect: not one of the values"),
        (
            {"tolerations": [{"key": "a", "tolerationSeconds": 3}]},
            "tolerations[0].tolerationSeconds: needs the effect NoExecute",
        ),
        ({"affinity": {"nodes": {}}}, "affinity.nodes: unknown key"),
        ({"volumes": [volume("ramdisk")]}, "volumes[0].volume_type: is not a valid volume type; write one of"),
        ({"volumes": [{"name": "v", "mount_path": "/v"}]}, "volumes[0]: needs exactly one source"),
        ({"volumes": [{"name": "v", "spec": {}}]}, "volumes[0].spec: needs a volume_type as well"),
        ({"volumes": [volume("persistent_volume_claim")]}, "volumes[0].spec.size: is required and missing"),
        ({"volumes": [volume("persistent_volume_claim", size="10GiB")]}, "volumes[0].spec.size: '10GiB' is not a"),
        ({"volumes": [volume("nfs", server="x", path="y")]}, "volumes[0].spec.path: is not a valid absolute path"),
        ({"volumes": [volume("gcs_fuse", bucket="gs://x")]}, "volumes[0].spec.bucket: is not a valid bucket name"),
        (
            {"volumes": [{"volume_type": "empty_dir", "name": "v"}]},
            "volumes[0].mountPath: is missing, so no program could use the volume",
        ),
        (
            {"volumes": [{**volume("empty_dir"), "nfs": {"server": "x", "path": "/"}}]},
            "volumes[0].nfs: cannot be combined with volume_type",
        ),
        ({"volumes": [{**volume("empty_dir"), "name": "V_1"}]}, "volumes[0].name: 'V_1' is not a valid name"),
        (
            {"volumes": [volume("empty_dir"), volume("empty_dir")]},
            ("volumes[1].name: volume 'v' is given twice", "volumes[1].mount_path: /v is mounted twice"),
        ),
        (
            {"volumes": [volume("empty_dir"), {**volume("empty_dir"), "name": "w", "mount_path": "/v/"}]},
            "volumes[1].mount_path: /v is mounted twice (also by v)",
        ),
        (
            {"volumeMounts": [{"name": "x", "mountPath": "/x"}]},
            "volumeMounts[0].name: volume 'x' is not declared, so Kubernetes would refuse the pod",
        ),
        ({"volumes": [{"name": "v", "emptyDir": {}}]}, "volumes[0]: volume 'v' is not mounted"),
        (
            {"shared_memory": "1G", "volumes": [{**volume("empty_dir"), "mount_path": SHARED_MEMORY}]},
            "volumes[0].mount_path: /dev/shm is mounted twice (also by sharedMemory)",
        ),
        ({"shared_memory": "lots"}, "shared_memory: 'lots' is not a Kubernetes quantity"),
        ({"shared_memory": 1}, "shared_memory: must be text; put it in quotes"),
    ],
)
def test_wrong_run_settings_are_refused_with_exactly_the_expected_lines(
    data: dict[str, Any], line: str | tuple[str, ...]
) -> None:
    found = said(data)

    assert_refused(found, line)
    assert "hunter2" not in str(found)


class TestOver:
    def test_what_the_winner_says_wins_and_the_rest_stays(self) -> None:
        merged, lost = over(
            read(run_as_user=2000, node_selector={"a": "1"}, resources={"mem": {"limits": "1Gi"}}),
            read(run_as_user=1000, fs_group=7, node_selector={"a": "2", "b": "3"}, envs=[{"name": "A", "value": "1"}]),
        )

        assert (merged.run_as_user, merged.fs_group, merged.node_selector) == (2000, 7, {"a": "1", "b": "3"})
        assert lost == [("nodeSelector", "a"), ("runAsUser",)]

    def test_a_variable_is_one_variable_whether_from_a_secret_or_not(self) -> None:
        literal = read(envs=[{"name": "A", "value": "1"}])
        from_secret = read(secrets=[{"name": "s", "key": "k", "env": "A"}])

        merged, lost = over(literal, from_secret)
        assert ([one.value for one in merged.variables], lost) == (["1"], [("secrets", 0)])
        merged, lost = over(from_secret, literal)
        assert ([one.value for one in merged.variables], lost) == ([None], [("envs", 0)])

    def test_of_two_secrets_with_the_same_keys_the_winners_comes_last_and_wins(self) -> None:
        merged, _ = over(read(secrets=["ours"]), read(secrets=["theirs"]))

        assert [source["secretRef"]["name"] for source in main(merged)["envFrom"]] == ["theirs", "ours"]

    def test_a_lost_volume_takes_its_other_mounts_along(self) -> None:
        again = [{"name": "v", "mountPath": "/again"}]
        merged, lost = over(
            read(volumes=[{**volume("empty_dir"), "name": "w"}]),
            read(volumes=[volume("empty_dir")], volumeMounts=again),
        )

        assert ([one.name for one in merged.volumes], merged.volume_mounts) == (["w"], [])
        assert lost == [("volumes", 0), ("volumeMounts", 0)]

    def test_shared_memory_that_a_volume_takes_the_place_of_is_reported(self) -> None:
        winner = read(volumes=[{**volume("empty_dir"), "mount_path": SHARED_MEMORY}])

        merged, lost = over(winner, read(shared_memory="1Gi"))

        assert (merged.shared_memory, lost) == (None, [("sharedMemory",)])

    def test_a_resource_is_decided_as_a_whole(self) -> None:
        merged, lost = over(
            read(resources={"mem": {"limits": "1Gi"}}),
            read(resources={"mem": {"requests": "8Gi"}, "cpu": {"limits": 1}}),
        )

        found = merged.resources.kubernetes
        assert (found.requests, found.limits) == ({}, {"cpu": "1", "memory": "1Gi"})
        assert lost == [("resources", "requests", "memory")]

    def test_equal_values_are_not_lost(self) -> None:
        same = read(run_as_user=1, envs=[{"name": "A", "value": "1"}], volumes=[volume("empty_dir")])

        assert over(same, same) == (same.model_copy(update={"volumes": same.volumes}), [])


_TEXT = st.text(max_size=12)
_SCALAR = st.none() | st.booleans() | st.integers(-10, 10**6) | st.floats(allow_nan=False) | _TEXT
_ANY = st.recursive(_SCALAR, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_TEXT, inner, max_size=3))
_KEYS = st.sampled_from([name for field, info in RunSettings.model_fields.items() for name in (field, info.alias)])
_NUMBER = st.integers(1, 64)


@given(st.dictionaries(_KEYS | _TEXT, _ANY, max_size=5))
@settings(max_examples=150, deadline=None, derandomize=True)
def test_no_input_crashes_the_parser(data: dict[str, Any]) -> None:
    for line in said(data):
        assert ": " in line


@given(
    cpu=_NUMBER,
    memory=_NUMBER,
    gpus=st.integers(0, 8),
    user=st.none() | st.integers(1, 65535),
    names=st.lists(st.from_regex(r"[a-z][a-z0-9]{0,5}", fullmatch=True), unique=True, max_size=3),
)
@settings(max_examples=60, deadline=None, derandomize=True)
def test_rendering_is_stable(cpu: int, memory: int, gpus: int, user: int | None, names: list[str]) -> None:
    data: dict[str, Any] = {
        "resources": {"cpu": {"requests": cpu}, "mem": {"limits": f"{memory}Gi"}, "gpu": {"limits": gpus}},
        "volumes": [{**volume("empty_dir"), "name": name, "mount_path": f"/{name}"} for name in names],
        "envs": [{"name": name, "value": name} for name in names],
        **({"run_as_user": user} if user else {}),
    }
    once = pod(read(**data))
    again, lost = final_pod(PodTemplate.model_validate(once), read(**data), job="j")

    assert again.as_kubernetes() == once
    assert lost == []


@pytest.mark.parametrize("build", [read, lambda: over(read(), read())[0]])
def test_empty_settings_leave_pods_alone(build: Callable[[], RunSettings]) -> None:
    assert pod(build()) == TEMPLATE.as_kubernetes()
