"""Which Pod Security level a pod needs, and what makes it fit for the strictest."""

from typing import Any

import pytest

from persia_infra.kube.pod_security import confined, security_need
from persia_infra.kube.pod_templates import PodTemplate

CONFINED = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}


def template(*containers: dict[str, Any], **spec: Any) -> PodTemplate:
    strict = {"securityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}}
    named = [
        {"name": f"c{index}", "securityContext": CONFINED, **each} for index, each in enumerate(containers or ({},))
    ]
    return PodTemplate.model_validate({"spec": {**strict, "containers": named, **spec}})


def level(pod: PodTemplate) -> str:
    need = security_need([pod.spec])
    return need[0] if need else "restricted"


@pytest.mark.parametrize(
    ("pod", "needed"),
    [
        (template(), "restricted"),
        (template({"ports": [{"containerPort": 80}]}), "restricted"),
        (template({"ports": [{"containerPort": 80, "hostPort": 80}]}), "privileged"),
        (template({"ports": [{"containerPort": 1}, {"containerPort": 2, "hostPort": 2}]}), "privileged"),
        (template({}, {"ports": [{"containerPort": 80, "hostPort": 80}]}), "privileged"),
        (template(hostNetwork=True), "privileged"),
        (template(volumes=[{"name": "v", "hostPath": {"path": "/x"}}]), "privileged"),
        (template(volumes=[{"name": "v", "nfs": {"server": "s", "path": "/"}}]), "baseline"),
        (template(volumes=[{"name": "v", "emptyDir": {}}]), "restricted"),
        (template({"securityContext": {**CONFINED, "runAsNonRoot": None}}), "restricted"),
        (template(securityContext={"seccompProfile": {"type": "RuntimeDefault"}}), "baseline"),
        (template(securityContext={"runAsNonRoot": True}), "baseline"),
        (template(securityContext={"runAsNonRoot": True, "seccompProfile": {"type": "Unconfined"}}), "privileged"),
        (template({"securityContext": {**CONFINED, "capabilities": {"add": ["IPC_LOCK"]}}}), "privileged"),
        (template({"securityContext": {**CONFINED, "capabilities": {"add": ["CHOWN"], "drop": ["ALL"]}}}), "baseline"),
        (template({"securityContext": {"capabilities": {"drop": ["ALL"]}}}), "baseline"),
        (template(initContainers=[{"name": "init"}]), "baseline"),
    ],
)
def test_the_level_follows_from_what_the_pod_asks_for(pod: PodTemplate, needed: str) -> None:
    assert level(pod) == needed


def test_of_several_pods_the_one_with_the_largest_need_decides() -> None:
    pods = [template().spec, template(hostNetwork=True).spec, template(securityContext={"runAsNonRoot": True}).spec]

    need = security_need(pods)

    assert need is not None
    assert need[0] == "privileged"


def test_a_pod_that_is_not_root_is_confined_with_all_of_its_containers() -> None:
    plain = {"name": "init", "image": "i"}
    pod = PodTemplate.model_validate(
        {"spec": {"securityContext": {"runAsUser": 1000}, "containers": [{"name": "main"}], "initContainers": [plain]}}
    )

    assert level(pod) == "baseline"
    assert level(confined(pod)) == "restricted"


def test_a_pod_that_may_be_root_is_left_alone() -> None:
    pod = PodTemplate.model_validate({"spec": {"containers": [{"name": "main"}]}})

    assert confined(pod) == pod
