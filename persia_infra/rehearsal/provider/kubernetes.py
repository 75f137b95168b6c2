"""The simulated `kubernetes` package: applies objects server-side, as version 4 of the official provider does.

It is used if the official plugin is not installed. Helm charts, YAML files, kustomizations and the `...Patch`
kinds are out of scope: they are refused, and the message says how to install the official plugin. Client-side
apply is out of scope too: every object is applied server-side, whatever `enableServerSideApply` says.

It talks to the rehearsal's own API server only, with the rehearsal's credentials. A kubeconfig of the program decides
nothing but whether this is the server that the program means: credentials in it are not used, and a credential plugin
in it is never run.
"""

import copy
import os
import threading
import time
from collections.abc import Callable
from importlib.metadata import version as installed_version
from pathlib import Path

from persia_infra.kube.api import (
    FIELD_MANAGER,
    ApiError,
    ApiResource,
    Cluster,
    NoSuchKind,
    Object,
    Refused,
    Unreachable,
    connect,
)
from persia_infra.rehearsal.provider import awaiting, immutability, objects
from persia_infra.rehearsal.provider.kubernetes_changes import difference
from persia_infra.rehearsal.provider.own_cluster import refuse_other_clusters
from persia_infra.rehearsal.provider.package import (
    UNKNOWN,
    CheckFailure,
    Difference,
    InitializationFailed,
    Properties,
    PropertyValue,
    ProviderError,
    Secret,
    Urn,
)

_DEFAULT_TIMEOUT = 600.0
_PATIENCE_SECONDS = 30.0
_ONLY_OFFICIAL = ("helm.sh", "yaml", "kustomize")
_SECRET_FIELDS = ("data", "stringData")


class Kubernetes:
    """One configured `kubernetes` provider."""

    name = "kubernetes"
    version = installed_version("pulumi-kubernetes")
    names_by_configuration = True

    def __init__(self, rehearsal: Path) -> None:
        """Creates an unconfigured provider; `rehearsal` is the kubeconfig of the rehearsal's administrator."""
        self._rehearsal = rehearsal
        self._cluster: Cluster | None = None
        self._unreachable = "this provider is not configured"
        self._namespace = "default"
        self._mutable_content: dict[str, bool] = {}
        self._scopes: dict[tuple[str, str], bool] = {}
        self._cancelled = threading.Event()

    def configure(self, variables: Properties) -> None:
        if variables.get("renderYamlToDirectory"):
            raise ProviderError(
                "kubernetes:renderYamlToDirectory: nothing is deployed with it, so there is nothing to rehearse; "
                "remove it"
            )
        namespace = variables.get("namespace")
        if isinstance(namespace, str) and namespace:
            self._namespace = namespace
        for kind in ("ConfigMap", "Secret"):
            given = variables.get(f"enable{kind}Mutable")
            given = os.environ.get(f"PULUMI_K8S_ENABLE_{kind.upper()}_MUTABLE") if given is None else given
            self._mutable_content[kind] = str(given).lower() == "true"
        if objects.holds_unknown(variables.get("kubeconfig")) or objects.holds_unknown(variables.get("context")):
            self._unreachable = "its kubeconfig is not known yet"
            return
        refuse_other_clusters(self._rehearsal, variables.get("kubeconfig"), variables.get("context"))
        self._cluster = connect(str(self._rehearsal), None)

    # Check and diff

    def check(self, urn: Urn, olds: Properties, news: Properties, seed: bytes) -> tuple[Properties, list[CheckFailure]]:
        api_version, kind = objects.api_version_and_kind(urn.type)
        _refuse_what_is_out_of_scope(urn, api_version, kind)
        failures: list[CheckFailure] = []
        inputs: Properties = objects.without_nulls(news)
        inputs.setdefault("apiVersion", api_version)
        inputs.setdefault("kind", kind)
        if "metadata" in inputs and not isinstance(inputs["metadata"], dict) and inputs["metadata"] is not UNKNOWN:
            return inputs, [CheckFailure("metadata", "must be an object")]
        unnamed = objects.name_object(urn, olds, inputs, seed)
        if unnamed:
            failures.append(CheckFailure("metadata.name", unnamed))
        self._remember_scopes(inputs)
        namespaced = self._is_namespaced(inputs["apiVersion"], inputs["kind"])
        if namespaced and isinstance(inputs.get("metadata"), dict):
            inputs["metadata"].setdefault("namespace", self._namespace)
        return _with_secrets(inputs), failures

    def diff(
        self,
        urn: Urn,  # noqa: ARG002
        object_id: str,
        old_inputs: Properties,
        old_outputs: Properties,
        news: Properties,
    ) -> Difference:
        news = objects.plain(news)
        content_may_change = self._mutable_content.get(str(news.get("kind")), False)
        if objects.metadata_of(news).get("namespace", self._namespace) == objects.namespace_of(object_id, old_outputs):
            old_inputs, news = objects.without_namespace(old_inputs), objects.without_namespace(news)
        return difference(
            self._cluster, object_id, objects.plain(old_inputs), news, content_may_change=content_may_change
        )

    # Create and update

    def create(
        self,
        urn: Urn,  # noqa: ARG002
        inputs: Properties,
        *,
        preview: bool,
        timeout: float,
    ) -> tuple[str, Properties]:
        inputs = objects.plain(inputs)
        if preview:
            return "", self._previewed(inputs, {})
        cluster = self._reachable(inputs)
        resource, applied = self._patiently(inputs, lambda: self._apply_anew(cluster, inputs))
        object_id = objects.id_of(applied)
        return object_id, self._wait_until_up(cluster, resource, object_id, inputs, applied, timeout)

    def update(
        self,
        urn: Urn,  # noqa: ARG002
        object_id: str,
        old_inputs: Properties,  # noqa: ARG002
        old_outputs: Properties,
        news: Properties,
        *,
        preview: bool,
        timeout: float,
    ) -> Properties:
        news = objects.plain(news)
        if preview:
            return self._previewed(news, old_outputs, object_id)
        cluster = self._reachable(news)
        manifest = objects.manifest_of(news, object_id)
        resource, applied = self._patiently(news, lambda: self._apply(cluster, manifest, True))
        return self._wait_until_up(cluster, resource, object_id, news, applied, timeout)

    def _apply_anew(self, cluster: Cluster, inputs: Properties) -> tuple[ApiResource, Object]:
        """Creates an object, unless another one of the same name is still being deleted."""
        manifest = objects.manifest_of(inputs)
        force = objects.annotation(inputs, "pulumi.com/patchForce").lower() == "true"
        try:
            resource, existing = self._apply(cluster, manifest, force)
        except Refused as refusal:
            if not immutability.is_immutable(refusal):
                raise
            resource = cluster.resource(manifest["apiVersion"], manifest["kind"])
            existing = cluster.get(resource, manifest["metadata"].get("namespace", ""), manifest["metadata"]["name"])
            if not existing or not existing["metadata"].get("deletionTimestamp"):
                raise
        if existing["metadata"].get("deletionTimestamp"):
            message = "an object of the same name is still being deleted"
            raise Refused(409, {"reason": "AlreadyExists", "message": message})
        return resource, existing

    def _apply(self, cluster: Cluster, manifest: Object, force: bool) -> tuple[ApiResource, Object]:
        resource = cluster.resource(manifest["apiVersion"], manifest["kind"])
        metadata = manifest["metadata"]
        if resource.namespaced:
            metadata.setdefault("namespace", self._namespace)
        else:
            metadata.pop("namespace", None)
        try:
            return resource, cluster.apply(resource, manifest, force=force)
        except Refused as refusal:
            if refusal.status == 404:
                cluster.forget(manifest["apiVersion"])
            raise

    def _patiently(
        self, inputs: Properties, attempt: Callable[[], tuple[ApiResource, Object]]
    ) -> tuple[ApiResource, Object]:
        """Repeats an attempt for a while if it fails only because something it needs does not exist yet."""
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while True:
            try:
                return attempt()
            except Refused as refusal:
                error: Exception = refusal.about(objects.described(inputs))
                may_succeed = refusal.may_pass
            except NoSuchKind as missing:
                error, may_succeed = ProviderError(f"{objects.described(inputs)}: {missing}"), True
            except Unreachable as unreachable:
                error, may_succeed = ProviderError(f"{objects.described(inputs)}: {unreachable}"), False
            if not may_succeed or time.monotonic() >= deadline or self._cancelled.wait(0.5):
                raise error

    def _wait_until_up(
        self,
        cluster: Cluster,
        resource: ApiResource,
        object_id: str,
        inputs: Properties,
        applied: Object,
        timeout: float,
    ) -> Properties:
        if resource.kind == "CustomResourceDefinition":
            self._forget_definition(cluster, applied)
        if objects.annotation(inputs, "pulumi.com/skipAwait").lower() == "true":
            return self._outputs(applied)
        try:
            live = awaiting.wait_until_up(
                cluster, resource, applied, timeout=_timeout(inputs, timeout), cancelled=self._cancelled
            )
        except awaiting.NotUp as failure:
            raise InitializationFailed(
                object_id, self._outputs(failure.live), _with_secrets(inputs), failure.reasons
            ) from None
        return self._outputs(live)

    def _previewed(self, inputs: Properties, old_outputs: Properties, object_id: str = "") -> Properties:
        """Returns what the object would be: the server's answer to a dry run if possible, else the inputs."""
        guess = copy.deepcopy(inputs)
        if old_outputs.get("status") is not None:
            guess["status"] = old_outputs["status"]
        elif not object_id:
            guess["status"] = UNKNOWN
        if self._cluster is None or objects.holds_unknown(inputs):
            return self._outputs(guess)
        manifest = objects.manifest_of(inputs, object_id)
        try:
            resource = self._cluster.resource(manifest["apiVersion"], manifest["kind"])
            result = self._cluster.apply(resource, manifest, dry_run=True, force=True)
        except Refused as refusal:
            if immutability.is_immutable(refusal) or refusal.may_pass:
                return self._outputs(guess)
            raise refusal.about(objects.described(inputs)) from None
        except (Unreachable, NoSuchKind):
            return self._outputs(guess)
        for made_up in ("creationTimestamp", "generation", "resourceVersion", *(() if object_id else ("uid",))):
            result["metadata"].pop(made_up, None)
        if not object_id:
            result["status"] = UNKNOWN
            if result["kind"] == "Service" and "clusterIP" not in inputs.get("spec", {}):
                result["spec"] |= {"clusterIP": UNKNOWN, "clusterIPs": UNKNOWN}
        return self._outputs(result)

    # Read and delete

    def read(
        self, urn: Urn, object_id: str, inputs: Properties, outputs: Properties
    ) -> tuple[Properties, Properties] | None:
        inputs, outputs = objects.plain(inputs), objects.plain(outputs)
        api_version, kind = objects.api_version_and_kind(urn.type)
        api_version = str(inputs.get("apiVersion") or outputs.get("apiVersion") or api_version)
        kind = str(inputs.get("kind") or outputs.get("kind") or kind)
        cluster = self._reachable({"kind": kind, "metadata": {"name": object_id}})
        namespace, name = objects.namespace_and_name(object_id)
        try:
            resource = cluster.resource(api_version, kind)
            live = cluster.get(resource, namespace or self._namespace, name)
        except NoSuchKind:
            return None
        except Refused as refusal:
            raise refusal.about(f"{kind} {object_id}") from None
        if live is None:
            return None
        live = {"apiVersion": api_version, "kind": kind} | live
        fresh = objects.refreshed_inputs(inputs, outputs, live) if inputs else objects.imported_inputs(live)
        return _with_secrets(fresh), self._outputs(live)

    def delete(self, urn: Urn, object_id: str, inputs: Properties, outputs: Properties, *, timeout: float) -> None:
        inputs, outputs = objects.plain(inputs), objects.plain(outputs)
        api_version, kind = objects.api_version_and_kind(urn.type)
        api_version = str(outputs.get("apiVersion") or api_version)
        kind = str(outputs.get("kind") or kind)
        namespace, name = objects.namespace_and_name(object_id)
        cluster = self._reachable({"kind": kind, "metadata": {"name": object_id}})
        try:
            resource = cluster.resource(api_version, kind)
            live = cluster.get(resource, namespace, name)
            if live is None:
                return
            uid = live["metadata"]["uid"]
            policy = objects.annotation(inputs or outputs, "pulumi.com/deletionPropagationPolicy").capitalize()
            cluster.delete(resource, namespace, name, uid, policy or "Foreground")
            if objects.annotation(inputs or outputs, "pulumi.com/skipAwait").lower() == "true":
                return
            awaiting.wait_until_gone(
                cluster,
                resource,
                namespace,
                name,
                uid,
                timeout=_timeout(inputs or outputs, timeout),
                cancelled=self._cancelled,
            )
        except NoSuchKind:
            return
        except Refused as refusal:
            if refusal.status in (404, 409) and refusal.reason in ("NotFound", "Conflict"):
                return
            raise refusal.about(f"{kind} {object_id}") from None
        if kind == "CustomResourceDefinition":
            self._forget_definition(cluster, live)

    def invoke(self, token: str, arguments: Properties) -> Properties:  # noqa: ARG002
        raise ProviderError(
            f"{token}: the simulated kubernetes provider has no functions; "
            "install the official plugin: pulumi plugin install resource kubernetes"
        )

    def cancel(self) -> None:
        self._cancelled.set()

    # Helpers

    def _reachable(self, inputs: Properties) -> Cluster:
        if self._cluster is None:
            raise ProviderError(f"{objects.described(inputs)}: there is no Kubernetes cluster: {self._unreachable}")
        return self._cluster

    def _outputs(self, live: Object) -> Properties:
        outputs = copy.deepcopy(live)
        outputs.get("metadata", {}).pop("managedFields", None)
        outputs["__initialApiVersion"] = live.get("apiVersion")
        outputs["__fieldManager"] = FIELD_MANAGER
        return _with_secrets(outputs)

    def _is_namespaced(self, api_version: PropertyValue, kind: PropertyValue) -> bool | None:
        if not isinstance(api_version, str) or not isinstance(kind, str):
            return None
        known = objects.builtin_scope(api_version, kind)
        if known is not None:
            return known
        try:
            if self._cluster is not None:
                return self._cluster.resource(api_version, kind).namespaced
        except ApiError:
            pass
        return self._scopes.get((api_version, kind))

    def _remember_scopes(self, inputs: Properties) -> None:
        """Records the scopes of kinds that the same program defines, for objects that are checked earlier."""
        spec = inputs.get("spec")
        if inputs.get("kind") != "CustomResourceDefinition" or not isinstance(spec, dict):
            return
        names, versions = spec.get("names"), spec.get("versions")
        if isinstance(names, dict) and isinstance(versions, list):
            for version in versions:
                if isinstance(version, dict):
                    key = (f"{spec.get('group')}/{version.get('name')}", str(names.get("kind")))
                    self._scopes[key] = spec.get("scope") == "Namespaced"

    def _forget_definition(self, cluster: Cluster, definition: Object) -> None:
        spec = definition.get("spec", {})
        for version in spec.get("versions", []):
            cluster.forget(f"{spec.get('group')}/{version.get('name')}")


def _refuse_what_is_out_of_scope(urn: Urn, api_version: str, kind: str) -> None:
    group = api_version.split("/")[0]
    if group in _ONLY_OFFICIAL or (kind.endswith("Patch") and objects.is_builtin(api_version)):
        raise ProviderError(
            f"{urn.type} {urn.name}: the simulated kubernetes provider cannot rehearse this type; "
            "install the official plugin: pulumi plugin install resource kubernetes"
        )


def _with_secrets(properties: Properties) -> Properties:
    if properties.get("kind") != "Secret" or properties.get("apiVersion") != "v1":
        return properties
    return {
        name: Secret(value) if name in _SECRET_FIELDS and not isinstance(value, Secret) else value
        for name, value in properties.items()
    }


def _timeout(inputs: Properties, requested: float) -> float:
    annotated = objects.annotation(inputs, "pulumi.com/timeoutSeconds")
    if requested > 0:
        return requested
    return float(annotated) if annotated.isdigit() else _DEFAULT_TIMEOUT
