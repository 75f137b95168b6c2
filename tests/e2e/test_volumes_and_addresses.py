"""What GKE gives to claims and Services: volumes through its storage classes, and addresses."""

from collections.abc import Iterator

import pytest

from persia_infra.rehearsal.control_plane import ControlPlane
from persia_infra.rehearsal.provider.cloud import Cloud, Record
from persia_infra.rehearsal.provider.gcp_types import CLUSTER
from tests.support.cluster_access import kubectl, wait_for

CLAIM = """
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {{name: {name}}}
spec:
  accessModes: [ReadWriteOnce]
  storageClassName: {storage_class}
  resources: {{requests: {{storage: 10Gi}}}}
"""


@pytest.fixture
def cloud(control_plane: ControlPlane) -> Iterator[Cloud]:
    made = Cloud(control_plane.kubeconfig)
    made.put("projects/p/locations/l/clusters/c", Record(CLUSTER, {}, {}))
    made.start()
    yield made
    made.remove("projects/p/locations/l/clusters/c")
    made.stop()


@pytest.mark.usefixtures("cloud")
def test_claim_is_bound_and_its_volume_goes_with_it(control_plane: ControlPlane) -> None:
    kubectl(control_plane, "apply", "-f", "-", stdin=CLAIM.format(name="data", storage_class="standard"))
    kubectl(control_plane, "wait", "--for=jsonpath={.status.phase}=Bound", "pvc/data", "--timeout=60s")
    volume = kubectl(control_plane, "get", "pvc/data", "-o", "jsonpath={.spec.volumeName}")
    kubectl(control_plane, "delete", "pvc/data")
    kubectl(control_plane, "wait", "--for=delete", f"pv/{volume}", "--timeout=60s")


def test_disk_waits_for_its_first_pod(control_plane: ControlPlane, cloud: Cloud) -> None:
    kubectl(control_plane, "apply", "-f", "-", stdin=CLAIM.format(name="disk", storage_class="standard-rwo"))
    of_disk = ("get", "events", "--field-selector", "involvedObject.name=disk", "-o", "jsonpath={.items[*].reason}")
    wait_for("an event", lambda: kubectl(control_plane, *of_disk), until="WaitForFirstConsumer".__eq__)
    cloud.api.serve_claims()
    assert kubectl(control_plane, "get", "pvc/disk", "-o", "jsonpath={.status.phase}") == "Pending"
    kubectl(control_plane, "delete", "pvc/disk")


@pytest.mark.usefixtures("cloud")
def test_load_balancer_gets_an_address(control_plane: ControlPlane) -> None:
    kubectl(control_plane, "create", "service", "loadbalancer", "front", "--tcp=80")
    given = "--for=jsonpath={.status.loadBalancer.ingress[0].ip}"
    kubectl(control_plane, "wait", given, "service/front", "--timeout=60s")
    kubectl(control_plane, "delete", "service/front")


def test_storage_classes_come_and_go_with_the_cluster(control_plane: ControlPlane) -> None:
    cloud = Cloud(control_plane.kubeconfig)
    cloud.put("projects/p/locations/l/clusters/c", Record(CLUSTER, {}, {}))
    classes = kubectl(control_plane, "get", "storageclasses", "-o", "name")
    assert "standard-rwo" in classes
    cloud.remove("projects/p/locations/l/clusters/c")
    assert kubectl(control_plane, "get", "storageclasses", "-o", "name") == ""
