"""The generated types, and the rules that apply to what users write."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from persia_infra.kube import types
from persia_infra.kube.pod_templates import PodTemplate
from persia_infra.kube.types.apps import StatefulSet
from persia_infra.kube.types.base import trusted
from persia_infra.rehearsal.sources import KUBERNETES, pinned_version
from persia_infra.spec.errors import findings_from
from tests.support.environments import put

GENERATED = [file for file in Path(types.__file__).parent.glob("*.py") if file.stem not in ("__init__", "base")]


def template(place: str = "", value: Any = None) -> dict[str, Any]:
    """A template that is right, with one value changed."""
    data: dict[str, Any] = {
        "spec": {
            "containers": [
                {
                    "name": "main",
                    "image": "example/train:1",
                    "env": [{"name": "A", "value": "b"}],
                    "resources": {"limits": {"cpu": "1"}},
                    "readinessProbe": {"httpGet": {"port": "http"}},
                    "volumeMounts": [{"name": "data", "mountPath": "/data"}],
                }
            ],
            "volumes": [{"name": "data", "projected": {"sources": [{"configMap": {"name": "files"}}]}}],
        }
    }
    if place:
        put(data, place, value)
    return data


def lines(data: dict[str, Any]) -> list[str]:
    with pytest.raises(ValidationError) as caught:
        PodTemplate.model_validate(data)
    return [
        f"{'.'.join(map(str, place))}: {message}" for place, message in findings_from(caught.value, PodTemplate, data)
    ]


def test_a_template_is_written_with_exactly_the_keys_that_were_given() -> None:
    data = template("spec/affinity", {"podAntiAffinity": {}})

    assert PodTemplate.model_validate(data).as_kubernetes() == data


def test_both_spellings_of_a_key_are_read() -> None:
    pod = {"host_pid": False, "containers": [{"name": "main", "image": "a", "volume_mounts": []}]}

    assert PodTemplate.model_validate({"spec": pod}).as_kubernetes() == {
        "spec": {"hostPID": False, "containers": [{"name": "main", "image": "a", "volumeMounts": []}]}
    }


@pytest.mark.parametrize(
    ("place", "value"),
    [
        ("spec/containers/0/resources/claims", [{"name": "gpu", "request": "one"}]),
        ("spec/resourceClaims", [{"name": "gpu", "resourceClaimName": "shared"}]),
        ("spec/containers/0/lifecycle", {"preStop": {"sleep": {"seconds": 5}}}),
        ("spec/containers/0/volumeMounts/0/recursiveReadOnly", "Enabled"),
        ("spec/volumes/0/projected/sources", [{"serviceAccountToken": {"path": "token"}}]),
        ("spec/dnsConfig", {"options": [{"name": "ndots", "value": "1"}]}),
        ("metadata", {"finalizers": ["example.com/wait"]}),
    ],
)
def test_keys_that_kubernetes_knows_are_accepted(place: str, value: Any) -> None:
    data = template(place, value)

    assert PodTemplate.model_validate(data).as_kubernetes() == data


@pytest.mark.parametrize(
    "place",
    [
        *("metadata", "spec/affinity", "spec/tolerations", "spec/nodeSelector", "spec/securityContext"),
        *("spec/initContainers", "spec/containers/0/env", "spec/containers/0/args", "spec/containers/0/resources"),
        *("spec/containers/0/readinessProbe/httpGet/httpHeaders", "spec/volumes/0/emptyDir"),
        "spec/volumes/0/projected/sources/0/configMap/items",
    ],
)
def test_null_means_absent(place: str) -> None:
    written = PodTemplate.model_validate(template(place, None)).as_kubernetes()
    *above, last = [int(key) if key.isdigit() else key for key in place.split("/")]
    part: Any = written
    for key in above:
        part = part[key]

    assert last not in part


def test_null_for_a_required_key_is_the_same_as_leaving_it_out() -> None:
    assert lines(template("spec/containers/0/name", None)) == ["spec.containers.0.name: is required and missing"]


@pytest.mark.parametrize(
    ("place", "value", "meant"),
    [
        ("metadata/label", {}, "labels"),
        ("spec/hostPid", True, "hostPID"),
        ("spec/containers/0/volumeMount", [], "volumeMounts"),
        ("spec/containers/0/resources/limit", {}, "limits"),
        ("spec/containers/0/readinessProbe/httpGet/prot", 80, "port"),
        ("spec/containers/0/securityContext", {"runAsuser": 1}, "runAsUser"),
        ("spec/volumes/0/projected/sources/0/configMap/item", [], "items"),
        ("spec/topologySpreadConstraints", [{"maxskew": 1}], "maxSkew"),
        ("spec/affnity", None, "affinity"),
    ],
)
def test_a_misspelt_key_is_refused_at_every_depth(place: str, value: Any, meant: str) -> None:
    assert any(
        line.endswith(f"would have no effect; did you mean {meant!r}?") for line in lines(template(place, value))
    )


def test_everything_that_is_wrong_with_a_container_is_said_at_once() -> None:
    data = template("spec/containers/0/name", "Main")
    put(data, "spec/containers/0/image", "no image")
    put(data, "spec/containers/0/env", [{"name": "A B"}, {"name": "API_TOKEN", "value": "s3cr3t-s3cr3t"}])
    put(data, "spec/containers/0/ports", [{"containerPort": 0}])
    put(data, "spec/containers/0/securityContext", {"privileged": True, "runAsUser": 0})
    put(data, "spec/hostPID", True)

    assert {line.partition(": ")[0] for line in lines(data)} == {
        "spec.containers.0.name",
        "spec.containers.0.image",
        "spec.containers.0.env.0.name",
        "spec.containers.0.env.1.value",
        "spec.containers.0.ports.0.containerPort",
        "spec.containers.0.securityContext.privileged",
        "spec.containers.0.securityContext.runAsUser",
        "spec.hostPID",
    }


@pytest.mark.parametrize(
    ("place", "value", "line"),
    [
        ("spec/containers", [], "spec.containers: is empty; give at least one"),
        ("spec/containers/0/ports", [{"containerPort": 65536}], "must be a port, from 1 to 65535"),
        ("spec/containers/0/ports", [{"containerPort": "80"}], "containerPort: must be a whole number"),
        ("spec/containers/0/ports", [{"containerPort": 80, "protocol": "ICMP"}], "protocol: not one of the values"),
        ("spec/containers/0/ports", [{"containerPort": 80, "hostPort": -1}], "hostPort: must be a port"),
        ("spec/containers/0/tty", "yes", "tty: must be true or false"),
        ("spec/containers/0/env", [{"name": "A"}, {"name": "A"}], "env.1.name: variable 'A' is given twice"),
        ("spec/containers/0/env", [{"name": "A", "value": "b", "valueFrom": {"fieldRef": {"fieldPath": "x"}}}], "both"),
        ("spec/containers/0/env", [{"name": "A", "valueFrom": {}}], "valueFrom: needs exactly one of secretKeyRef"),
        ("spec/containers/0/env", [{"name": "A", "valueFrom": {"secretKeyRef": {"key": "k"}}}], "name: is required"),
        ("spec/containers/0/envFrom", [{"prefix": "A_"}], "envFrom.0: needs exactly one of secretRef and configMapRef"),
        ("spec/containers/0/envFrom", [{"secretRef": {}}], "envFrom.0.secretRef.name: is required and missing"),
        ("spec/containers/0/resources", {"limits": {"nvidia.com/gpu": "0.5"}}, "is not a whole number of GPUs"),
        (
            "spec/containers/0/resources",
            {"requests": {"nvidia.com/gpu": 1}, "limits": {"nvidia.com/gpu": 2}},
            "resources.requests.nvidia.com/gpu: GPUs cannot be overcommitted",
        ),
        (
            "spec/containers/0/resources",
            {"requests": {"cpu": 2}, "limits": {"cpu": 1}},
            "2 is more than the limit of 1",
        ),
        ("spec/containers/0/securityContext", {"runAsNonRoot": False}, "false asks for root"),
        ("spec/containers/0/securityContext", {"allowPrivilegeEscalation": True}, "become root after all"),
        ("spec/containers/0/securityContext", {"procMount": "Unmasked"}, "opens the node's kernel settings"),
        ("spec/containers/0/securityContext", {"capabilities": {"add": ["CAP_SYS_ADMIN"]}}, "capabilities.add.0: "),
        ("spec/securityContext", {"supplementalGroups": [1000, 0]}, "supplementalGroups.1: 0 is root"),
        ("spec/securityContext", {"fsGroup": -1}, "fsGroup: must be greater than or equal to 0"),
        ("spec/hostIPC", True, "hostIPC: lets the pod reach the shared memory"),
        ("spec/ephemeralContainers", [{"name": "debug"}], "ephemeralContainers: is only for pods that run already"),
        ("spec/imagePullSecrets", [{"name": "A b"}], "imagePullSecrets.0.name: is not a valid name"),
        ("spec/terminationGracePeriodSeconds", -1, "terminationGracePeriodSeconds: must be greater than or equal to 0"),
        ("spec/activeDeadlineSeconds", 0, "activeDeadlineSeconds: must be greater than or equal to 1"),
        (
            "spec/tolerations",
            [{"key": "a", "operator": "Gt", "value": "1"}],
            "tolerations.0.operator: Gt is not enabled",
        ),
        ("spec/volumes/0/emptyDir", {}, "volumes.0: needs exactly one source"),
        ("spec/volumes/0", {"name": "data", "emptyDir": {"sizeLimit": "0"}}, "leaves no room at all"),
        ("spec/volumes/0", {"name": "data", "emptyDir": {"medium": "memory"}}, "medium: is not a valid medium"),
        ("spec/volumes/0", {"name": "data", "secret": {}}, "secret.secretName: is required and missing"),
        ("spec/volumes/0", {"name": "data", "ephemeral": {}}, "ephemeral.volumeClaimTemplate: is required"),
        (
            "spec/volumes/0",
            {"name": "data", "ephemeral": {"volumeClaimTemplate": {"spec": {"accessModes": ["ReadWriteOnce"]}}}},
            "resources.requests.storage: is required and missing; write how much is claimed",
        ),
        ("spec/volumes/0/name", "other", "volumeMounts.0.name: no volume 'data' is declared"),
        (
            "spec/affinity",
            {"podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 0}]}},
            "weight: must be between 1 and 100",
        ),
    ],
)
def test_what_kubernetes_or_a_run_must_not_have_is_refused(place: str, value: Any, line: str) -> None:
    assert any(line in found for found in lines(template(place, value))), lines(template(place, value))


def test_pods_of_the_library_itself_may_do_what_runs_may_not() -> None:
    data = template("spec/containers/0/securityContext", {"privileged": True, "runAsUser": 0})
    put(data, "spec/hostPID", True)

    assert trusted(PodTemplate, data).as_kubernetes() == data
    with pytest.raises(KeyError, match="imagee"):
        trusted(PodTemplate, template("spec/containers/0/imagee", "a"))


def test_an_object_says_its_kind() -> None:
    data = {"metadata": {"name": "a"}, "spec": {"selector": {}, "serviceName": "a", "template": template()}}

    written = StatefulSet.model_validate(data).as_kubernetes()

    assert written == {"apiVersion": "apps/v1", "kind": "StatefulSet", **data}


@pytest.mark.parametrize("module", ["types.apps", "types.pods", "types.storage", "pods", "pod_templates", "affinity"])
def test_the_rules_apply_whichever_module_is_imported_first(module: str) -> None:
    program = (
        f"import persia_infra.kube.{module}\n"
        "from persia_infra.kube.types.pods import PodSpec\n"
        "try:\n"
        "    PodSpec.model_validate({'hostPID': True, 'containers': [], 'tolerations': [{}]})\n"
        "except ValueError as error:\n"
        "    print(error.error_count())\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert done.stdout == "3\n"


@pytest.mark.parametrize("file", GENERATED, ids=lambda file: file.stem)
def test_types_are_of_the_pinned_kubernetes(file: Path) -> None:
    found = re.search(r"Generated from the OpenAPI documents of Kubernetes (\S+) by `make types`", file.read_text())

    assert found, "only generated modules belong into this folder"
    assert found[1] == pinned_version(KUBERNETES), "run `make types`"
