"""The simulated Google Cloud package: it answers the Pulumi engine instead of pulumi-gcp.

A cluster is the rehearsal's own control plane, and a node pool becomes nodes on it; every other type is recorded,
with plausible answers. It refuses what Google Cloud would refuse. Out of scope: Autopilot, permissions, quotas and
prices.
"""

import hashlib
import secrets
import threading
from copy import deepcopy
from difflib import get_close_matches
from importlib.metadata import version as installed_version

from persia_infra.kube.api import ApiError
from persia_infra.rehearsal.provider.cloud import Cloud, Record, cluster_outputs, not_found
from persia_infra.rehearsal.provider.gcp_changes import difference
from persia_infra.rehearsal.provider.gcp_types import (
    CLUSTER,
    NODE_POOL,
    ResourceType,
    computed_outputs,
    object_id,
    project_number,
    region_of,
    resource_type,
    unknown_outputs,
    zones_of,
)
from persia_infra.rehearsal.provider.gke_api import Malformed, cluster_message, node_pool_message
from persia_infra.rehearsal.provider.gke_rules import refused_in_cluster, refused_in_node_pool
from persia_infra.rehearsal.provider.nodes import PoolPlan, cluster_zones, pool_plan
from persia_infra.rehearsal.provider.package import (
    UNKNOWN,
    CheckFailure,
    Difference,
    Properties,
    ProviderError,
    Seed,
    Urn,
)

_SETTINGS = ("project", "region", "zone")
_CLUSTER_BLOCKS = (
    ("masterAuth", "clusterCaCertificate"),
    ("privateClusterConfig", "privateEndpoint"),
    ("privateClusterConfig", "publicEndpoint"),
    ("controlPlaneEndpointsConfig", "dnsEndpointConfig", "endpoint"),
)
"""Values that Google fills in inside blocks which the program may set."""


class Gcp:
    """One configured provider of the package; the resources are in the shared `Cloud`."""

    name = "gcp"
    version = installed_version("pulumi-gcp")
    names_by_configuration = True

    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud
        self._settings: Properties = {}
        self._cancelled = threading.Event()

    def configure(self, variables: Properties) -> None:
        self._settings = {name: variables[name] for name in _SETTINGS if variables.get(name)}

    def check(self, urn: Urn, olds: Properties, news: Properties, seed: bytes) -> tuple[Properties, list[CheckFailure]]:
        kind = resource_type(urn.type)
        inputs = {key: value for key, value in news.items() if value is not None and not key.startswith("__")}
        failures = [_unknown_property(kind, key) for key in inputs if key not in kind.inputs]
        filled = []
        if "name" in kind.inputs and "name" not in inputs and "namePrefix" not in inputs:
            kept = olds.get("name") if "name" in (olds.get("__defaults") or []) else None
            if name := kept or _automatic_name(urn.name, seed):
                inputs["name"] = name
                filled.append("name")
            else:
                failures.append(CheckFailure("name", "no name is set, and pulumi:autonaming is disabled: set a name"))
        if "project" in kind.inputs and "project" not in inputs:
            if project := self._settings.get("project"):
                inputs["project"] = project
                filled.append("project")
            else:
                failures.append(
                    CheckFailure(
                        "project", "no project is set: run `pulumi config set gcp:project <id>`, or set it here"
                    )
                )
        inputs["__defaults"] = filled
        return inputs, failures

    def diff(
        self,
        urn: Urn,
        object_id: str,  # noqa: ARG002
        old_inputs: Properties,
        old_outputs: Properties,  # noqa: ARG002
        news: Properties,
    ) -> Difference:
        return difference(resource_type(urn.type), old_inputs, news)

    def create(self, urn: Urn, inputs: Properties, *, preview: bool, timeout: float) -> tuple[str, Properties]:
        kind = resource_type(urn.type)
        _refuse_as_the_api(kind, inputs)
        if preview:
            return "", _previewed(kind, inputs)
        new_id = object_id(kind, inputs, self._settings)
        self._cloud.claim(new_id, kind.token, shared=kind.is_grant)
        try:
            plans = self._pool_plans(kind, new_id, inputs)
            outputs = self._answer(kind, new_id, inputs, plans)
        except (ProviderError, ApiError):
            self._cloud.release(new_id)
            raise
        self._cloud.put(new_id, Record(kind.token, deepcopy(inputs), outputs))
        try:
            for pool_id, plan in plans.items():
                self._cloud.make_pool(pool_id, plan, outputs, inputs, timeout, self._cancelled)
        except (ProviderError, ApiError):
            self._cloud.delete_pools(new_id, timeout, self._cancelled)
            self._cloud.remove(new_id)
            raise
        return new_id, deepcopy(outputs)

    def read(
        self,
        urn: Urn,
        object_id: str,
        inputs: Properties,  # noqa: ARG002
        outputs: Properties,  # noqa: ARG002
    ) -> tuple[Properties, Properties] | None:
        record = self._cloud.find(object_id)
        if record is None or record.type != urn.type:
            return None
        known_inputs, known_outputs = deepcopy(record.inputs), deepcopy(record.outputs)
        sizes = self._cloud.pool_size(object_id)
        if sizes and "nodeCount" in known_inputs and set(sizes.values()) != {int(known_inputs["nodeCount"])}:
            known_inputs["nodeCount"] = known_outputs["nodeCount"] = min(sizes.values())
        return known_inputs, known_outputs

    def update(
        self,
        urn: Urn,
        object_id: str,
        old_inputs: Properties,  # noqa: ARG002
        old_outputs: Properties,
        news: Properties,
        *,
        preview: bool,
        timeout: float,
    ) -> Properties:
        kind = resource_type(urn.type)
        _refuse_as_the_api(kind, news)
        if preview:
            return {**old_outputs, **{key: value for key, value in news.items() if not key.startswith("__")}}
        if self._cloud.find(object_id) is None:
            raise not_found(object_id)
        plans = self._pool_plans(kind, object_id, news)
        outputs = self._answer(kind, object_id, news, plans)
        outputs |= {key: value for key, value in old_outputs.items() if key in kind.kept_outputs}
        self._cloud.put(object_id, Record(kind.token, deepcopy(news), outputs))
        if kind.token == NODE_POOL:
            for pool_id, plan in plans.items():
                self._cloud.change_pool(pool_id, plan, outputs, news, timeout, self._cancelled)
        return deepcopy(outputs)

    def delete(self, urn: Urn, object_id: str, inputs: Properties, outputs: Properties, *, timeout: float) -> None:
        record = self._cloud.find(object_id)
        if record is None:
            return
        policy = outputs.get("deletionPolicy") or inputs.get("deletionPolicy")
        if policy == "ABANDON":
            return
        if policy == "PREVENT":
            raise ProviderError(
                f"{object_id}: deletionPolicy is PREVENT: set it to DELETE, run `pulumi up`, then delete it"
            )
        if urn.type == CLUSTER and outputs.get("deletionProtection", True):
            raise ProviderError(
                f"{object_id}: deletionProtection is on, so the cluster cannot be deleted: "
                "set deletion_protection to false, run `pulumi up`, then delete or replace it"
            )
        self._cloud.refuse_if_in_use(object_id, record)
        if urn.type in {CLUSTER, NODE_POOL}:
            self._cloud.delete_pools(object_id, timeout, self._cancelled)
        self._cloud.remove(object_id)

    def invoke(self, token: str, arguments: Properties) -> Properties:
        project = arguments.get("project") or arguments.get("projectId") or self._settings.get("project") or ""
        region = arguments.get("region") or self._settings.get("region") or region_of(self._settings.get("zone") or "")
        match ":".join(token.split(":")[:2]):
            case "gcp:container/getEngineVersions":
                version = self._cloud.kubernetes_version()
                channels = dict.fromkeys(("RAPID", "REGULAR", "STABLE"), version)
                return {
                    **arguments,
                    "id": "rehearsal",
                    "defaultClusterVersion": version,
                    "latestMasterVersion": version,
                    "latestNodeVersion": version,
                    "releaseChannelDefaultVersion": channels,
                    "releaseChannelLatestVersion": channels,
                    "validMasterVersions": [version],
                    "validNodeVersions": [version],
                }
            case "gcp:organizations/getProject":
                number = str(project_number(project))
                return {"id": f"projects/{project}", "projectId": project, "name": project, "number": number}
            case "gcp:organizations/getClientConfig":
                return {
                    "id": f"projects/{project}",
                    "accessToken": "",
                    "defaultLabels": {},
                    **dict.fromkeys(_SETTINGS, ""),
                    **self._settings,
                }
            case "gcp:compute/getZones":
                zones = zones_of(region)
                return {**arguments, "id": f"projects/{project}/regions/{region}", "project": project, "names": zones}
        raise ProviderError(
            f"{token}: this lookup is not simulated in a rehearsal: pass the value to the program as configuration"
        )

    def cancel(self) -> None:
        self._cancelled.set()

    def _answer(self, kind: ResourceType, new_id: str, inputs: Properties, plans: dict[str, PoolPlan]) -> Properties:
        outputs = computed_outputs(kind, new_id, inputs, self._settings)
        if kind.token == CLUSTER:
            return cluster_outputs(self._cloud, new_id, outputs, cluster_zones(inputs, outputs["location"]))
        if kind.token == NODE_POOL:
            plan = plans[new_id]
            group = f"https://www.googleapis.com/compute/v1/projects/{plan.project}/zones"
            urls = [f"{group}/{zone}/instanceGroupManagers/gke-{plan.cluster}-{plan.name}" for zone in plan.start]
            outputs |= {
                "location": new_id.split("/")[3],
                "nodeLocations": inputs.get("nodeLocations") or list(plan.start),
                "instanceGroupUrls": urls,
                "managedInstanceGroupUrls": [url.replace("instanceGroupManagers", "instanceGroups") for url in urls],
                "maxPodsPerNode": inputs.get("maxPodsPerNode") or 110,
                "initialNodeCount": inputs.get("initialNodeCount", inputs.get("nodeCount", 0)),
                "version": inputs.get("version") or self._cloud.kubernetes_version(),
            }
            if "nodeCount" not in inputs:
                outputs.pop("nodeCount", None)
        return outputs

    def _pool_plans(self, kind: ResourceType, new_id: str, inputs: Properties) -> dict[str, PoolPlan]:
        """Returns the plans of a resource's node pools: itself, those inside a cluster, or the default pool."""
        if kind.token == NODE_POOL:
            return {new_id: self._plan(new_id, inputs)}
        if kind.token != CLUSTER:
            return {}
        if inputs.get("enableAutopilot"):
            raise ProviderError(f"{new_id}: Autopilot is not simulated in a rehearsal: describe the node pools instead")
        pools = [dict(pool) for pool in inputs.get("nodePools") or []]
        if not pools and int(inputs.get("initialNodeCount") or 0) < 1:
            raise ProviderError(
                f"{new_id}: Google Cloud would refuse it: Error 400: "
                "Cluster.initial_node_count must be greater than zero: set initial_node_count to 1, "
                "with remove_default_node_pool if the pools are separate resources"
            )
        if not pools and not inputs.get("removeDefaultNodePool"):
            pools = [
                {
                    "name": "default-pool",
                    "nodeConfig": inputs.get("nodeConfig"),
                    "initialNodeCount": inputs["initialNodeCount"],
                }
            ]
        plans = {}
        for number, pool in enumerate(pools):
            pool.setdefault("name", f"pool-{number}")
            plans[f"{new_id}/nodePools/{pool['name']}"] = self._plan(f"{new_id}/nodePools/{pool['name']}", pool, inputs)
        return plans

    def _plan(self, pool_id: str, inputs: Properties, cluster: Properties | None = None) -> PoolPlan:
        cluster_id, _, _ = pool_id.partition("/nodePools/")
        if cluster is None:
            record = self._cloud.find(cluster_id)
            if record is None:
                raise ProviderError(
                    f"{pool_id}: Google Cloud would refuse it: Error 404: no cluster {cluster_id}: "
                    "take the pool's cluster and location from the outputs of the cluster"
                )
            cluster = record.inputs
        _, project, _, location, _, name = cluster_id.split("/")
        return pool_plan(
            inputs,
            cluster=name,
            cluster_location=location,
            cluster_zones=cluster_zones(cluster, location),
            project=project,
        )


def _refuse_as_the_api(kind: ResourceType, inputs: Properties) -> None:
    """Checks clusters and node pools against the API's messages and documented rules, also in a preview."""
    try:
        if kind.token == CLUSTER:
            bad = list(refused_in_cluster(cluster_message(inputs)))
        elif kind.token == NODE_POOL:
            bad = list(refused_in_node_pool(node_pool_message(inputs)))
        else:
            return
    except Malformed as malformed:
        bad = list(malformed.fields)
    if bad:
        name = inputs.get("name")
        where = f"{kind.kind} {name}" if isinstance(name, str) else kind.kind
        reasons = "; ".join(map(str, bad))
        raise ProviderError(f"{where}: Google Cloud would refuse it: Error 400: INVALID_ARGUMENT: {reasons}")


def _previewed(kind: ResourceType, inputs: Properties) -> Properties:
    outputs = deepcopy(unknown_outputs(kind, inputs))
    if kind.token == CLUSTER:
        for path in _CLUSTER_BLOCKS:
            block = outputs
            for key in path[:-1]:
                block = block.get(key) if isinstance(block, dict) else None
            if isinstance(block, dict):
                block[path[-1]] = UNKNOWN
    return outputs


def _automatic_name(resource_name: str, seed: bytes) -> str | None:
    """Returns a name as pulumi-gcp would choose it, or as the project's `pulumi:autonaming` configures it."""
    rules = seed if isinstance(seed, Seed) else Seed(seed)
    if rules.naming == "disable":
        return None
    if rules.proposed_name:
        return rules.proposed_name if rules.naming == "enforce" else rules.proposed_name.lower()
    ending = hashlib.sha256(seed).hexdigest()[:7] if seed else secrets.token_hex(4)[:7]
    return f"{resource_name.lower()}-{ending}"


def _unknown_property(kind: ResourceType, name: str) -> CheckFailure:
    near = get_close_matches(name, kind.inputs, n=1)
    return CheckFailure(
        name, f"{kind.token} has no property {name!r}" + (f": did you mean {near[0]!r}?" if near else "")
    )
