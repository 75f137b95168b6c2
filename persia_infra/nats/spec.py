"""A NATS cluster with the NATS operator's own fields (`size`, `natsConfig`, `pod`, `tls`, `auth`).

By default it runs natively, as a StatefulSet: the NATS maintainers advise against their operator for new
deployments. Gateways, leaf nodes and websockets, which training jobs do not need, are not supported.
"""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import Field, model_validator

from persia_infra.kube.pod_templates import Toleration
from persia_infra.kube.pods import Resources
from persia_infra.spec.base import DnsLabel, Finding, Image, PodCount, Quantity, Spec, matching, refuse
from persia_infra.spec.quantity import parse_quantity

MAX_PAYLOAD = 64 * 1024 * 1024
"""The largest message in bytes that nats-server supports."""


class NatsConfig(Spec):
    """Limits of the servers."""

    max_payload: int = Field(default=52428800, ge=1024)
    """Largest message in bytes, at most 64 MiB; PERSIA sends whole batches of ID features through NATS."""
    max_connections: int | None = Field(default=None, ge=1)
    """Largest number of clients connected to one server; nats-server's own default when absent."""
    max_pending: int | None = Field(default=None, ge=1)
    """Largest number of bytes queued for one client before it is disconnected."""
    max_subscriptions: int | None = Field(default=None, ge=1)
    """Largest number of subscriptions per connection; unlimited when absent."""
    max_control_line: int | None = Field(default=None, ge=1)
    """Longest protocol line in bytes, subject included; nats-server's own default when absent."""
    write_deadline: Annotated[str, matching("[0-9]+(ms|s|m)", "duration; write one such as 10s or 500ms")] | None = (
        Field(default=None, alias="write_deadline")
    )
    """How long a write to a client may take before it is disconnected, such as 10s or 500ms."""
    disable_logtime: bool = False
    """Leaves the time out of the server's log lines."""
    debug: bool = False
    """Logs debug messages."""
    trace: bool = False
    """Logs every protocol message, which slows the servers down."""

    @model_validator(mode="before")
    @classmethod
    def _refuse_mistaken_key(cls, data: Any) -> Any:  # noqa: ANN401
        if isinstance(data, Mapping) and "writeDeadline" in data:
            message = "the NATS operator ignores this spelling; write 'write_deadline'"
            refuse([(("writeDeadline",), message)])
        return data


class NatsPod(Spec):
    """The supported part of the operator's pod policy."""

    resources: Resources | None = None
    """Requests and limits of each server; 500m CPU and 1Gi of memory by default."""
    labels: dict[str, str] = Field(default={})
    """Further labels of the server pods."""
    annotations: dict[str, str] = Field(default={})
    """Annotations of the server pods."""
    node_selector: dict[str, str] = Field(default={})
    """Labels that the nodes of the server pods must have."""
    tolerations: list[Toleration] = Field(default=[])
    """Taints of nodes that the server pods tolerate."""
    anti_affinity: bool = False
    """Allows at most one server per node; otherwise they are spread as far as the nodes allow."""


_FileName = Annotated[str, matching("[-._a-zA-Z0-9]+", "key of a Secret; use letters, digits, '-', '_' and '.'")]


class NatsTls(Spec):
    """Certificates from Secrets that already exist in the namespace."""

    server_secret: DnsLabel | None = None
    """The Secret that holds the certificate for client connections."""
    server_secret_ca_file_name: _FileName = Field(default="ca.pem", alias="serverSecretCAFileName")
    """The key of the CA certificate in `serverSecret`."""
    server_secret_key_file_name: _FileName = Field(default="server-key.pem")
    """The key of the private key in `serverSecret`."""
    server_secret_cert_file_name: _FileName = Field(default="server.pem")
    """The key of the certificate in `serverSecret`."""
    routes_secret: DnsLabel | None = None
    """The Secret that holds the certificate for connections between servers."""
    routes_secret_ca_file_name: _FileName = Field(default="ca.pem", alias="routesSecretCAFileName")
    """The key of the CA certificate in `routesSecret`."""
    routes_secret_key_file_name: _FileName = Field(default="route-key.pem")
    """The key of the private key in `routesSecret`."""
    routes_secret_cert_file_name: _FileName = Field(default="route.pem")
    """The key of the certificate in `routesSecret`."""
    verify: bool = False
    """Requires a certificate from clients too."""


class NatsAuth(Spec):
    """The users who may connect, from a Secret that already exists in the namespace."""

    clients_auth_secret: DnsLabel
    """The Secret whose key `clients-auth.json` lists `users` with `username` and `password`."""
    clients_auth_timeout: int | None = Field(default=None, ge=1)
    """Seconds that a client has to authenticate; nats-server's own default when absent."""


class JetStream(Spec):
    """Persistent streams, on a disk for each server."""

    storage: Quantity
    """Size of each server's disk for streams, such as 20Gi."""
    storage_class_name: DnsLabel | None = None
    """The StorageClass of the disks; the cluster's default when absent."""
    memory: Quantity = "256Mi"
    """Memory of each server for streams that are kept in memory."""

    @property
    def storage_bytes(self) -> int:
        """The size of each server's disk in bytes."""
        return int(parse_quantity(self.storage))

    @property
    def memory_bytes(self) -> int:
        """The memory for in-memory streams in bytes."""
        return int(parse_quantity(self.memory))


class NatsSpec(Spec):
    """A NATS cluster."""

    kind: Literal["NatsCluster"] = Field(default="NatsCluster", exclude=True)
    """Always NatsCluster."""
    mode: Literal["native", "operator"] = Field(default="native", exclude=True)
    """Whether the cluster is a plain StatefulSet (native) or an object for the NATS operator."""
    size: PodCount = Field(default=3, ge=1)
    """Number of servers."""
    version: str | None = None
    """Tag of the server image; 2.14.2-alpine, or 2.14.2 under the NATS operator, by default."""
    server_image: Image = "nats"
    """Repository of the server image, without a tag."""
    nats_config: NatsConfig = NatsConfig.defaults()
    """Limits and logging of the servers."""
    pod: NatsPod = NatsPod.defaults()
    """Resources, labels and placement of the server pods, as the NATS operator spells them."""
    tls: NatsTls | None = None
    """Encryption with certificates from Secrets of the namespace; none when absent."""
    auth: NatsAuth | None = None
    """Users who may connect, from a Secret of the namespace; clients need no login when absent."""
    jetstream: JetStream | None = Field(default=None, exclude=True)
    """Streams on disk (native mode only); none when absent."""
    resources: Resources | None = Field(default=None, exclude=True)
    """Requests and limits of each server, as an alternative to `pod.resources`."""
    pool: DnsLabel | None = Field(default=None, exclude=True)
    """The node pool of the server pods; the only pool without GPUs when absent."""

    @property
    def server_version(self) -> str:
        """The image's tag; not an Alpine image for the operator, which starts `/nats-server`."""
        return self.version or ("2.14.2" if self.mode == "operator" else "2.14.2-alpine")

    @property
    def server_resources(self) -> Resources:
        """The requests and limits of one server, from either field that can hold them."""
        default = Resources(requests={"cpu": "500m", "memory": "1Gi"}, limits={"memory": "1Gi"})
        return self.resources or self.pod.resources or default

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        refuse(self._findings())
        return self

    def _findings(self) -> Iterator[Finding]:
        if self.nats_config.max_payload > MAX_PAYLOAD:
            yield (
                ("natsConfig", "maxPayload"),
                f"nats-server does not start with more than {MAX_PAYLOAD} bytes (64 MiB); lower it, "
                "and send smaller batches if they are larger",
            )
        pending = self.nats_config.max_pending
        if pending is not None and pending < self.nats_config.max_payload:
            yield (
                ("natsConfig", "maxPending"),
                f"{pending} is less than maxPayload, so one large message would disconnect a client; raise it",
            )
        if self.resources and self.pod.resources:
            yield (
                ("resources",),
                "cannot be combined with pod.resources, because it is ambiguous which one applies; remove one",
            )
        for key in self.pod.labels:
            if key == "app" or key.startswith(("nats_", "app.kubernetes.io/")):
                yield ("pod", "labels", key), "is a label that selects the server pods; choose another key"
        if self.tls and self.tls.verify and not self.tls.server_secret:
            yield ("tls", "verify"), "requires certificates from clients, but serverSecret is missing; add it"
        if self.jetstream and self.jetstream.storage_bytes < 1:
            yield ("jetstream", "storage"), "is not a valid disk size; write one such as 20Gi"
        if self.mode == "operator":
            yield from self._operator_findings()

    def _operator_findings(self) -> Iterator[Finding]:
        if self.jetstream:
            yield ("jetstream",), "cannot be combined with mode: operator, which has no disks; remove one"
        if "alpine" in self.server_version:
            yield ("version",), "the NATS operator starts /nats-server, which Alpine images do not have; remove -alpine"

    def notes(self) -> Iterator[Finding]:
        """Notes on differences between this library and the NATS operator, and on its limits."""
        if self.resources:
            yield (
                ("resources",),
                "was read as pod.resources, where it takes effect; the NATS operator would ignore it here",
            )
        if self.mode == "operator":
            yield (
                ("mode",),
                "the NATS maintainers advise against their operator for new deployments; remove this to run natively",
            )
            yield (
                ("mode",),
                "the NATS operator does not change running servers; after a change of anything but size and version, "
                "delete their pods one by one, so that it recreates them",
            )


class NatsClusterSpec(NatsSpec):
    """A NATS cluster that is deployed by itself rather than as part of a job."""

    NAME_LIMIT: ClassVar[int] = 54
    """The longest allowed name: that of the headless Service is 9 characters longer, and Kubernetes allows 63."""

    namespace: DnsLabel | None = Field(default=None, exclude=True)
    """The namespace of the cluster."""

    @classmethod
    def name_findings(cls, name: str) -> Iterator[Finding]:
        """What is wrong with the cluster's name."""
        if len(name) > cls.NAME_LIMIT:
            yield (
                (),
                f"the name has {len(name)} characters, so its Service's name would be too long for Kubernetes; use at "
                f"most {cls.NAME_LIMIT}",
            )
