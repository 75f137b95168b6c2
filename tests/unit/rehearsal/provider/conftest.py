"""One simulated cloud for each test, on a cluster in memory."""

import base64
from pathlib import Path

import pytest
import yaml

from persia_infra.rehearsal.provider.cloud import Cloud
from persia_infra.rehearsal.provider.gcp import Gcp
from tests.support.fake_cloud import FakeCluster


@pytest.fixture
def cluster() -> FakeCluster:
    return FakeCluster()


@pytest.fixture
def cloud(cluster: FakeCluster, tmp_path: Path) -> Cloud:
    kubeconfig = tmp_path / "kubeconfig"
    entry = {"server": "https://127.0.0.1:6443", "certificate-authority-data": base64.b64encode(b"CA").decode()}
    kubeconfig.write_text(yaml.safe_dump({"clusters": [{"name": "local", "cluster": entry}]}))
    return Cloud(kubeconfig, cluster)


@pytest.fixture
def gcp(cloud: Cloud) -> Gcp:
    provider = Gcp(cloud)
    provider.configure({"project": "demo", "region": "us-central1"})
    return provider
