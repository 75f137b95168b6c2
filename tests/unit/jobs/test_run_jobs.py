"""What jobs of all kinds that are made of pod templates have in common."""

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from persia_infra.jobs import MPIJobSpec, PaddleJobSpec, SingleNodeJobSpec, TrainingJobSpec
from persia_infra.spec.base import Spec
from persia_infra.spec.errors import InputError
from persia_infra.stack import parse_environment
from tests.support.environments import JOBS, VOLUME
from tests.support.run_jobs import object_spec, places, read


class TestProfiles:
    def test_a_profile_wins_and_every_value_that_it_overrides_is_reported(self, environment: dict[str, Any]) -> None:
        environment["profiles"] = {"large": {"resources": {"mem": {"limits": "12Gi"}}, "node_selector": {"tier": "a"}}}
        environment["pools"]["gpu"]["labels"] = {"tier": "a"}
        job = read(environment, "mpi", profile="large", settings={"resources": {"mem": {"limits": "4Gi"}}})

        worker = object_spec(job)["mpiReplicaSpecs"]["Worker"]["template"]["spec"]
        assert worker["containers"][0]["resources"]["limits"]["memory"] == "12Gi"
        assert worker["nodeSelector"] == {"tier": "a"}
        notes = {".".join(map(str, place)): said for place, said in job.notes()}
        assert "is overridden by the profile 'large'" in notes["settings.resources.limits.memory"]
        template = "mpiReplicaSpecs.Worker.template.spec.containers.0.resources.limits.memory"
        assert "is overridden by the profile 'large'" in notes[template]

    def test_the_fit_is_that_of_the_profile(self, environment: dict[str, Any]) -> None:
        environment["profiles"] = {"huge": {"resources": {"mem": {"limits": "900Gi"}}}}
        environment["jobs"]["single"]["profile"] = "huge"

        with pytest.raises(InputError, match=r"single\.template\.spec\.containers: asks for 900.00Gi memory"):
            parse_environment(environment)

    def test_a_role_can_have_another_profile_than_its_job(self, environment: dict[str, Any]) -> None:
        environment["profiles"] = {name: {"envs": [{"name": "SIZE", "value": name}]} for name in ("small", "large")}
        environment["jobs"]["paddle"]["ps"]["profile"] = "small"
        spec = object_spec(read(environment, "paddle", profile="large"))

        values = {role: spec[role]["template"]["spec"]["containers"][0]["env"][0]["value"] for role in ("ps", "worker")}
        assert values == {"ps": "small", "worker": "large"}

    def test_a_profile_wins_over_every_container_of_the_run(self, environment: dict[str, Any]) -> None:
        environment["profiles"] = {"safe": {"run_as_user": 1000, "run_as_group": 1000}}
        pod = environment["jobs"]["single"]["template"]["spec"]
        pod["containers"][0]["securityContext"] = {"runAsUser": 2000, "readOnlyRootFilesystem": True}
        pod["initContainers"] = [{"name": "init", "securityContext": {"runAsGroup": 7, "runAsUser": 1000}}]
        job = read(environment, "single", profile="safe")

        spec = object_spec(job)["template"]["spec"]
        users = [
            spec["securityContext"],
            *(one["securityContext"] for one in spec["containers"] + spec["initContainers"]),
        ]
        assert [one.get("runAsUser") for one in users] == [1000, None, None]
        assert [one.get("runAsGroup") for one in users] == [1000, None, None]
        assert users[1]["readOnlyRootFilesystem"]
        assert places(job) == [
            "template.spec.initContainers.0.securityContext.runAsGroup",
            "template.spec.containers.0.securityContext.runAsUser",
        ]

    def test_a_profiles_user_must_reach_the_workers(self, environment: dict[str, Any]) -> None:
        environment["profiles"] = {"safe": {"run_as_user": 1000}}
        environment["jobs"]["mpi"]["profile"] = "safe"

        with pytest.raises(InputError, match=r"mpi\.sshAuthMountPath: is /root/.ssh, which user 1000"):
            parse_environment(environment)

    def test_a_profiles_variable_wins_over_a_secret_of_the_run(self, environment: dict[str, Any]) -> None:
        environment["profiles"] = {"safe": {"envs": [{"name": "FOO", "value": "admin"}]}}
        job = read(
            environment, "single", profile="safe", settings={"secrets": [{"name": "x", "key": "k", "env": "FOO"}]}
        )

        container = object_spec(job)["template"]["spec"]["containers"][0]
        assert container["env"] == [{"name": "FOO", "value": "admin"}]
        assert places(job) == ["settings.secrets.0"]

    def test_a_volume_of_a_profile_replaces_one_of_the_template_and_that_is_reported(
        self, environment: dict[str, Any]
    ) -> None:
        environment["profiles"] = {"safe": {"volumes": [VOLUME]}}
        environment["jobs"]["single"]["template"]["spec"]["volumes"] = [{"name": "v", "hostPath": {"path": "/etc"}}]
        job = read(environment, "single", profile="safe")

        volumes = object_spec(job)["template"]["spec"]["volumes"]
        assert [one for one in volumes if one["name"] == "v"] == [{"name": "v", "emptyDir": {}}]
        assert places(job) == ["template.spec.volumes.0"]


_POD = {
    "single": "single/template/spec",
    "mpi": "mpi/mpiReplicaSpecs/Worker/template/spec",
    "paddle": "paddle/ps/template/spec",
}
_BY_CONTAINER = "containers/0/securityContext"


@pytest.mark.parametrize("job", _POD)
@pytest.mark.parametrize(
    ("place", "value", "line"),
    [
        ("securityContext/runAsUser", 0, "0 is root, which runs are not allowed to be"),
        ("securityContext/runAsGroup", 0, "0 is root"),
        ("securityContext/fsGroup", 0, "0 is root"),
        ("securityContext/runAsNonRoot", False, "false asks for root"),
        (f"{_BY_CONTAINER}/runAsUser", 0, "0 is root"),
        (f"{_BY_CONTAINER}/runAsUser", True, "must be a whole number"),
        (f"{_BY_CONTAINER}/runAsNonRoot", False, "false asks for root"),
        (f"{_BY_CONTAINER}/privileged", True, "gives the container the whole node"),
        (f"{_BY_CONTAINER}/allowPrivilegeEscalation", True, "lets a program become root after all"),
        (f"{_BY_CONTAINER}/procMount", "Unmasked", "Unmasked opens the node's kernel settings"),
        (f"{_BY_CONTAINER}/capabilities", {"add": ["CAP_SYS_ADMIN"]}, "CAP_SYS_ADMIN makes a container as powerful"),
        ("hostPID", True, "lets the pod reach the processes of everything on its node"),
        ("hostIPC", True, "lets the pod reach the shared memory of everything on its node"),
        ("hostNetwork", True, "gives the pod its node's network"),
        ("containers/0/env", [{"name": "DB_PASSWORD", "value": "hunter2"}], "the value of DB_PASSWORD looks like a"),
        ("containers/0/resources", {"limits": {"memory": "1e100"}}, "is more than Kubernetes can count"),
        ("containers/0/resources", {"limits": {"cpu": "1e-400"}}, "is finer than a billionth"),
        ("affinity/podAffinity", {"required": []}, "unknown key"),
    ],
)
def test_refused_in_every_kind(
    spoiled_job: Callable[..., list[str]], job: str, place: str, value: Any, line: str
) -> None:
    found = spoiled_job(f"{_POD[job]}/{place}", value)

    start = f"{JOBS}.{_POD[job]}/{place}".replace("/0", "[0]").replace("/", ".")
    assert len(found) == 1, found
    assert found[0].startswith(start)
    assert f": {line}" in found[0]
    assert "hunter2" not in str(found)


def test_containers_that_add_up_to_more_than_can_be_counted_do_not_fit(environment: dict[str, Any]) -> None:
    pod = environment["jobs"]["single"]["template"]["spec"]
    pod["containers"] = [{"name": name, "resources": {"limits": {"memory": "7Ei"}}} for name in ("a", "b")]

    said = r"jobs\.single\.template\.spec\.containers: asks for .*Gi memory, but a g2-standard-8 node"
    with pytest.raises(InputError, match=said):
        parse_environment(environment)


def test_paddles_own_words_for_the_nodes_network_are_taken(environment: dict[str, Any]) -> None:
    environment["jobs"]["paddle"]["ps"]["template"]["spec"]["hostNetwork"] = True

    assert read(environment, "paddle", intranet="Host").security_need()[0] == "privileged"


_UNFILTERED = {"securityContext": {"seccompProfile": {"type": "Unconfined"}}}


class TestPodSecurity:
    @pytest.mark.parametrize(
        ("name", "changes", "level"),
        [
            ("training", {}, "restricted"),
            ("training", {"settings": {"resources": {"gpu": {"limits": "1"}}}}, "baseline"),
            ("single", {"settings": {"run_as_user": 1000}}, "restricted"),
            ("single", {"settings": {"run_as_user": 1000, "volumes": [VOLUME]}}, "restricted"),
            (
                "single",
                {"settings": {"volumes": [{**VOLUME, "volume_type": "host_path", "spec": {"path": "/x"}}]}},
                "privileged",
            ),
            (
                "single",
                {"template": {"spec": {**_UNFILTERED, "containers": [{"name": "a", "image": "i"}]}}, "pool": "cpu"},
                "privileged",
            ),
            ("mpi", {}, "baseline"),
            ("mpi", {"settings": {"run_as_user": 1}, "sshAuthMountPath": "/home/x/.ssh"}, "restricted"),
            ("paddle", {"settings": {"run_as_user": 1000}}, "baseline"),
            ("paddle", {"intranet": "Host"}, "privileged"),
        ],
    )
    def test_a_namespace_is_as_strict_as_its_jobs_allow(
        self, environment: dict[str, Any], name: str, changes: Any, level: str
    ) -> None:
        environment["jobs"] = {name: {**environment["jobs"][name], **changes}}
        spec = parse_environment(environment)

        assert spec.pod_security("training") == level
        because = [said for place, said in spec.notes() if place == ("namespaces", 0)]
        assert bool(because) == (level != "restricted")
        assert all(f"because of the job {name}: " in said for said in because)

    def test_without_jobs_it_is_the_strictest(self, environment: dict[str, Any]) -> None:
        assert parse_environment({**environment, "jobs": {}}).pod_security("training") == "restricted"


def test_one_name_is_one_share(environment: dict[str, Any]) -> None:
    for role, path in (("ps", "/a"), ("worker", "/b")):
        share = {**VOLUME, "volume_type": "nfs", "spec": {"server": "10.0.0.2", "path": path}}
        environment["jobs"]["paddle"][role]["settings"] = {"volumes": [share]}

    with pytest.raises(InputError, match=r"jobs\.paddle\.worker\.settings: its volume 'v' is a different share"):
        parse_environment(environment)


_TEXT = st.text(max_size=8)
_QUANTITY = st.sampled_from(["1e100", "1e-400", "-1Gi", "8Ei", "1e999", "0e999"])
_SCALAR = st.none() | st.booleans() | st.integers(-3, 99) | _TEXT | _QUANTITY
_ANY = st.recursive(_SCALAR, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_TEXT, inner, max_size=3))


def _keys(*models: type[Spec]) -> st.SearchStrategy[str]:
    known = {"cleanPolicy", "mainContainer", "mpiDistribution", "backoffLimit", "containers", "Launcher", "spec"}
    known |= {"resources", "limits", "memory"}
    return st.sampled_from(
        sorted(known.union(*({info.alias or "" for info in m.model_fields.values()} for m in models)))
    )


@pytest.mark.parametrize("kind", ["MPIJob", "PaddleJob", "Job", "TrainingJob"])
@given(data=st.data())
@settings(max_examples=60, deadline=None, derandomize=True)
def test_no_manifest_crashes_the_parser(kind: str, data: st.DataObject) -> None:
    keys = _keys(MPIJobSpec, PaddleJobSpec, SingleNodeJobSpec, TrainingJobSpec) | _TEXT
    inner = st.recursive(
        _ANY, lambda one: st.dictionaries(keys, one, max_size=3) | st.lists(one, max_size=2), max_leaves=6
    )
    job = data.draw(st.dictionaries(keys, inner, max_size=5))
    environment = {
        "project": "persia-example",
        "region": "us-central1",
        "cluster": {"zones": ["us-central1-a"], "authorizedNetworks": [{"cidr": "203.0.113.0/24"}]},
        "pools": {"cpu": {"machineType": "n2-standard-8", "count": 1}},
        "jobs": {"j": {**job, "kind": kind}},
    }
    with suppress(InputError):
        parse_environment(environment)
