"""Storage of a simulated GKE cluster."""

from typing import Any

import pytest

from persia_infra.kube.api import Object, Refused
from persia_infra.rehearsal.provider.volumes import (
    CLASSES,
    add_storage_classes,
    remove_storage_classes,
    serve_claims,
)
from tests.support.fake_api import FakeApi

DISK = "pd.csi.storage.gke.io"


def claim(name: str, phase: str = "Pending", provisioner: str = DISK) -> Object:
    annotations = {"volume.kubernetes.io/storage-provisioner": provisioner} if provisioner else {}
    return {
        "metadata": {"name": name, "namespace": "train", "uid": f"uid-{name}", "annotations": annotations},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "standard-rwo",
            "resources": {"requests": {"storage": "10Gi"}},
        },
        "status": {"phase": phase},
    }


def volume(name: str, phase: str, provisioner: str = DISK) -> Object:
    return {
        "metadata": {"name": name, "annotations": {"pv.kubernetes.io/provisioned-by": provisioner}},
        "status": {"phase": phase},
    }


class Storage:
    """An API server with claims and volumes that records changes."""

    def __init__(self, claims: list[Object], volumes: list[Object]) -> None:
        self.lists = {"persistentvolumeclaims": claims, "persistentvolumes": volumes}
        self.created: list[Any] = []
        self.deleted: list[str] = []
        self.api = FakeApi(self.answer)

    def answer(self, method: str, path: str, _: dict[str, str], body: Any) -> Object:
        name = path.rsplit("/", 1)[-1]
        if method == "GET":
            return {"items": self.lists[name]}
        if method == "POST":
            self.created.append(body)
        else:
            self.deleted.append(name)
        return {}


def test_a_waiting_claim_gets_a_volume_of_its_size_and_class() -> None:
    storage = Storage([claim("data")], [])
    serve_claims(storage.api)
    (created,) = storage.created
    assert created["metadata"]["name"] == "pvc-uid-data"
    assert created["spec"]["capacity"] == {"storage": "10Gi"}
    assert created["spec"]["storageClassName"] == "standard-rwo"
    assert created["spec"]["claimRef"]["name"] == "data"


@pytest.mark.parametrize(
    "other", [claim("bound", "Bound"), claim("foreign", provisioner="example.com/other"), claim("new", provisioner="")]
)
def test_claims_that_gke_would_not_serve_now_get_no_volume(other: Object) -> None:
    storage = Storage([other], [])
    serve_claims(storage.api)
    assert storage.created == []


def test_only_released_volumes_of_gke_are_deleted() -> None:
    volumes = [volume("free", "Released"), volume("used", "Bound"), volume("mine", "Released", "example.com/other")]
    storage = Storage([], volumes)
    serve_claims(storage.api)
    assert storage.deleted == ["free"]


def test_storage_classes_have_one_default() -> None:
    storage = Storage([], [])
    add_storage_classes(storage.api)
    default = "storageclass.kubernetes.io/is-default-class"
    names = [each["metadata"]["name"] for each in storage.created if each["metadata"]["annotations"].get(default)]
    assert names == ["standard-rwo"]
    remove_storage_classes(storage.api)
    assert sorted(storage.deleted) == sorted(name for name, *_ in CLASSES)


@pytest.mark.parametrize(("status", "expected"), [(409, False), (500, True)])
def test_a_storage_class_that_exists_already_is_not_an_error(status: int, expected: bool) -> None:
    def refuse(*_: Any) -> Object:
        raise Refused(status, {"message": "refused"})

    if expected:
        with pytest.raises(Refused):
            add_storage_classes(FakeApi(refuse))
    else:
        add_storage_classes(FakeApi(refuse))
