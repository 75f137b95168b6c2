"""What an update of the simulated kubernetes package waits for, and its messages when it waits too long."""

from tests.support.provider_project import Project, k8s, pod_template

LABELS = {"app": "probe"}


class TestWaiting:
    def test_an_update_waits_for_every_kind(self, project: Project) -> None:
        def program() -> None:
            selected = {"selector": {"matchLabels": LABELS}, "template": pod_template()}
            k8s.apps.v1.StatefulSet(
                "set", metadata=project.metadata("set"), spec={"serviceName": "set", "replicas": 2, **selected}
            )
            k8s.apps.v1.DaemonSet("daemon", metadata=project.metadata("daemon"), spec=selected)
            k8s.batch.v1.Job(
                "job", metadata=project.metadata("job"), spec={"template": pod_template(restartPolicy="Never")}
            )
            k8s.core.v1.Pod("pod", metadata=project.metadata("pod"), spec=pod_template()["spec"])
            k8s.core.v1.Service(
                "service", metadata=project.metadata("service"), spec={"selector": LABELS, "ports": [{"port": 80}]}
            )
            k8s.core.v1.Service(
                "headless",
                metadata=project.metadata("headless"),
                spec={"selector": {"app": "nobody"}, "clusterIP": "None", "ports": [{"port": 80}]},
            )
            late = k8s.storage.v1.StorageClass(
                "late",
                metadata={"name": project.namespace},
                provisioner="example.com/none",
                volume_binding_mode="WaitForFirstConsumer",
            )
            k8s.core.v1.PersistentVolumeClaim(
                "disk",
                metadata=project.metadata("disk"),
                spec={
                    "accessModes": ["ReadWriteOnce"],
                    "storageClassName": late.metadata["name"],
                    "resources": {"requests": {"storage": "1Gi"}},
                },
            )

        assert project.up(program) == {"create": 8}
        assert project.live("statefulset", "set")["status"]["readyReplicas"] == 2
        assert project.live("job", "job")["status"]["succeeded"] == 1
        assert project.up(program) == {}
        project.destroy()
        assert project.kubectl("get", "all,pvc", "--output=name") == ""

    def test_a_failed_job_is_kept_and_tried_again(self, project: Project) -> None:
        def program() -> None:
            template = pod_template(restartPolicy="Never", nodeSelector={"probe": "nowhere"})
            k8s.batch.v1.Job(
                "job", metadata=project.metadata("job"), spec={"activeDeadlineSeconds": 1, "template": template}
            )

        message = project.refused(program)
        assert f"[Job {project.namespace}/job]: failed: DeadlineExceeded" in message
        assert project.resource("Job")["initErrors"]
        assert "DeadlineExceeded" in project.refused(program)

    def test_a_pod_that_fits_on_no_node_is_reported_with_the_reason_of_the_scheduler(self, project: Project) -> None:
        def program() -> None:
            k8s.apps.v1.StatefulSet(
                "set",
                metadata=project.metadata("set", annotations={"pulumi.com/timeoutSeconds": "3"}),
                spec={
                    "serviceName": "set",
                    "selector": {"matchLabels": LABELS},
                    "template": pod_template(nodeSelector={"probe": "nowhere"}),
                },
            )

        message = project.refused(program)
        assert f"[StatefulSet {project.namespace}/set]: not up after 3 s: 0 of 1 pods are ready" in message
        assert f"[Pod {project.namespace}/set-0]: Unschedulable: 0/" in message
        assert project.resource("StatefulSet")["id"] == f"{project.namespace}/set"
