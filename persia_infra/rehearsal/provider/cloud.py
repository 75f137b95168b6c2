"""The simulated Google Cloud of one rehearsal: its resources, and the control plane that serves as its cluster.

It lives as long as the process and keeps everything in memory. Permissions, quotas, and the network itself are
out of scope: resources are only recorded, except for clusters and node pools.
"""

import base64
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import yaml

from persia_infra.rehearsal.provider.autoscaler import (
    Autoscaler,
    GrowingPool,
    daemon_pods,
    growth,
    is_waiting,
    rooms,
)
from persia_infra.rehearsal.provider.gcp_types import CLUSTER, NETWORK, SUBNETWORK, last_segment
from persia_infra.rehearsal.provider.node_pools import ClusterApi, KubernetesApi, LivePool
from persia_infra.rehearsal.provider.nodes import PoolPlan
from persia_infra.rehearsal.provider.package import InitializationFailed, Properties, ProviderError

NODES_WITHIN_SECONDS: Final = 120.0


@dataclass
class Record:
    """An existing resource, with its inputs and Google's answer."""

    type: str
    inputs: Properties
    outputs: Properties


@dataclass(frozen=True)
class ControlPlaneAddress:
    """The address of the cluster's API server, from the administrator's kubeconfig."""

    endpoint: str
    ca_certificate: str

    @classmethod
    def read(cls, kubeconfig: Path) -> "ControlPlaneAddress":
        cluster = yaml.safe_load(kubeconfig.read_text())["clusters"][0]["cluster"]
        if not (certificate := cluster.get("certificate-authority-data")):
            file = kubeconfig.parent / cluster["certificate-authority"]
            certificate = base64.b64encode(file.read_bytes()).decode()
        return cls(urlsplit(cluster["server"]).netloc, certificate)


class Cloud:
    """The cloud of a rehearsal, shared by all of its providers; `start` and `stop` control the autoscaler."""

    def __init__(self, kubeconfig: Path, api: ClusterApi | None = None) -> None:
        self._kubeconfig = kubeconfig
        self._api = api
        self._lock = threading.RLock()
        self._records: dict[str, Record] = {}
        self._claimed: set[str] = set()
        self._pools: dict[str, LivePool] = {}
        self._autoscaler = Autoscaler(self._look_after_the_cluster)

    def start(self) -> None:
        self._autoscaler.start()

    def stop(self) -> None:
        self._autoscaler.stop()

    @property
    def api(self) -> ClusterApi:
        with self._lock:
            if self._api is None:
                self._api = KubernetesApi(self._kubeconfig)
            return self._api

    def control_plane(self) -> ControlPlaneAddress:
        return ControlPlaneAddress.read(self._kubeconfig)

    def kubernetes_version(self) -> str:
        """Returns the version in GKE's notation: `1.36.3-gke.1000`."""
        return f"{self.api.version().removeprefix('v').partition('+')[0]}-gke.1000"

    def find(self, object_id: str) -> Record | None:
        with self._lock:
            return self._records.get(object_id)

    def of_type(self, type_token: str) -> list[str]:
        """Returns the ids of all resources of a type."""
        with self._lock:
            return [object_id for object_id, record in self._records.items() if record.type == type_token]

    def claim(self, object_id: str, type_token: str, *, shared: bool) -> None:
        """Reserves the id of an object that is about to be created; call `put` or `release` afterwards.

        Raises:
            ProviderError: The object exists already, or it is a second cluster.
        """
        with self._lock:
            if not shared and (object_id in self._records or object_id in self._claimed):
                raise ProviderError(
                    f"{object_id}: Google Cloud would refuse it: Error 409: it already exists: give it another name, "
                    f"or import the existing one with `pulumi import {type_token} <name> {object_id}`"
                )
            if type_token == CLUSTER:
                others = self.of_type(CLUSTER)
                others += [known for known in self._claimed if "/clusters/" in known and "/nodePools/" not in known]
                if others:
                    raise ProviderError(
                        f"{object_id}: a rehearsal has only one control plane, and {others[0]} uses it: "
                        "rehearse each cluster in its own stack"
                    )
            self._claimed.add(object_id)

    def release(self, object_id: str) -> None:
        with self._lock:
            self._claimed.discard(object_id)

    def put(self, object_id: str, record: Record) -> None:
        with self._lock:
            self._claimed.discard(object_id)
            self._records[object_id] = record
        if record.type == CLUSTER:
            self.api.add_storage_classes()

    def remove(self, object_id: str) -> None:
        """Removes an object with everything inside it: a cluster's node pools are removed with the cluster."""
        with self._lock:
            removed = self._records.get(object_id)
            inside = f"{object_id}/nodePools/"
            self._records = {
                known: record
                for known, record in self._records.items()
                if known != object_id and not known.startswith(inside)
            }
        if removed and removed.type == CLUSTER:
            self.api.remove_storage_classes()

    def refuse_if_in_use(self, object_id: str, record: Record) -> None:
        """Raises ProviderError for a network that still has subnetworks, as Google does."""
        if record.type != NETWORK:
            return
        with self._lock:
            for other_id, other in self._records.items():
                network = str(other.outputs.get("network") or "")
                if other.type == SUBNETWORK and last_segment(network) == last_segment(object_id):
                    raise ProviderError(
                        f"{object_id}: Google Cloud would refuse to delete it: Error 400: it is in use by {other_id}: "
                        "delete that first; a subnetwork must take its network from the network's own output"
                    )

    def make_pool(
        self,
        object_id: str,
        plan: PoolPlan,
        outputs: Properties,
        inputs: Properties,
        timeout: float,
        cancelled: threading.Event,
    ) -> None:
        """Creates the nodes and waits until they are ready.

        Raises:
            InitializationFailed: The nodes exist, but some did not become ready in time.
        """
        pool = LivePool(plan, self.api)
        with self._lock:
            self._pools[object_id] = pool
        pool.make()
        self._settle(pool, object_id, outputs, inputs, timeout, cancelled)

    def change_pool(
        self,
        object_id: str,
        plan: PoolPlan,
        outputs: Properties,
        inputs: Properties,
        timeout: float,
        cancelled: threading.Event,
    ) -> None:
        pool = self._pool(object_id)
        pool.change(plan)
        self._settle(pool, object_id, outputs, inputs, timeout, cancelled)

    def delete_pools(self, prefix: str, timeout: float, cancelled: threading.Event) -> None:
        """Deletes the pool with this id, or every pool of the cluster with this id."""
        with self._lock:
            leaving = {key: pool for key, pool in self._pools.items() if key == prefix or key.startswith(f"{prefix}/")}
        for object_id, pool in leaving.items():
            pool.close()
            if left := pool.wait_until_gone(timeout or NODES_WITHIN_SECONDS, cancelled):
                raise ProviderError(
                    f"{object_id}: {len(left)} nodes still exist, for example {left[0]}: run the command again"
                )
            with self._lock:
                self._pools.pop(object_id, None)

    def pool_size(self, object_id: str) -> dict[str, int] | None:
        """Returns the number of nodes by zone, or None if the id is not a pool's."""
        with self._lock:
            pool = self._pools.get(object_id)
        return pool.nodes_by_zone() if pool else None

    def _look_after_the_cluster(self) -> None:
        if self.of_type(CLUSTER):
            self.grow_pools()
            self.api.serve_claims()
            self.api.serve_load_balancers()

    def grow_pools(self) -> None:
        """Adds the nodes that waiting pods need at the moment."""
        with self._lock:
            pools = [pool for pool in self._pools.values() if pool.plan.limits]
        if not pools or not (waiting := [pod for pod in self.api.waiting_pods() if is_waiting(pod)]):
            return
        growing = [
            GrowingPool(pool.plan.name, pool.plan.template, pool.nodes_by_zone(), pool.plan.limits)
            for pool in pools
            if pool.plan.limits
        ]
        if not any(pool.limits.room(pool.nodes) for pool in growing):
            return
        free = rooms(self.api.nodes(), self.api.pods())
        added = growth(growing, free, waiting, daemon_pods(self.api.daemon_sets()))
        for pool in pools:
            if zones := added.get(pool.plan.name):
                pool.grow(zones)

    def _pool(self, object_id: str) -> LivePool:
        with self._lock:
            if pool := self._pools.get(object_id):
                return pool
        raise not_found(object_id)

    @staticmethod
    def _settle(
        pool: LivePool,
        object_id: str,
        outputs: Properties,
        inputs: Properties,
        timeout: float,
        cancelled: threading.Event,
    ) -> None:
        if left := pool.wait_until_ready(timeout or NODES_WITHIN_SECONDS, cancelled):
            reason = f"{len(left)} nodes did not become ready in time, for example {left[0]}"
            raise InitializationFailed(object_id, outputs, inputs, [reason])


def not_found(object_id: str) -> ProviderError:
    """Returns the error for an object that no longer exists."""
    return ProviderError(
        f"{object_id}: Google Cloud has no such object (Error 404): it was deleted outside of Pulumi; "
        "run `pulumi refresh`, then `pulumi up`"
    )


def cluster_outputs(cloud: Cloud, object_id: str, outputs: Properties, zones: list[str]) -> Properties:
    """Returns the outputs of a cluster; endpoint and CA are those of the real control plane."""
    address, version = cloud.control_plane(), cloud.kubernetes_version()
    endpoints: dict[str, Any] = outputs.get("controlPlaneEndpointsConfig") or {}
    dns: dict[str, Any] = endpoints.get("dnsEndpointConfig") or {}
    authentication: dict[str, Any] = outputs.get("masterAuth") or {}
    private: dict[str, Any] = outputs.get("privateClusterConfig") or {}
    certificates = {
        "clientCertificateConfig": {"issueClientCertificate": False},
        "clientCertificate": "",
        "clientKey": "",
    }
    return {
        **outputs,
        "endpoint": address.endpoint,
        "masterAuth": {**certificates, **authentication, "clusterCaCertificate": address.ca_certificate},
        "masterVersion": version,
        "nodeVersion": outputs.get("nodeVersion") or version,
        "nodeLocations": outputs.get("nodeLocations") or zones,
        "selfLink": f"https://container.googleapis.com/v1/{object_id}",
        "controlPlaneEndpointsConfig": {
            "ipEndpointsConfig": {"enabled": True},
            **endpoints,
            "dnsEndpointConfig": {"allowExternalTraffic": False, **dns, "endpoint": address.endpoint},
        },
        "privateClusterConfig": {
            **private,
            "privateEndpoint": address.endpoint,
            "publicEndpoint": address.endpoint,
        },
        "clusterIpv4Cidr": outputs.get("clusterIpv4Cidr") or "10.64.0.0/14",
        "servicesIpv4Cidr": outputs.get("servicesIpv4Cidr") or "34.118.224.0/20",
        "networkingMode": outputs.get("networkingMode") or "VPC_NATIVE",
        "defaultMaxPodsPerNode": outputs.get("defaultMaxPodsPerNode") or 110,
        "datapathProvider": outputs.get("datapathProvider") or "LEGACY_DATAPATH",
    }
