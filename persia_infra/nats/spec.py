"""A NATS cluster in the NATS operator's own words (`size`, `natsConfig`, `pod`, `tls`, `auth`).

By default it is run natively, as a StatefulSet: the NATS maintainers advise against their operator for new
deployments. Gateways, leaf nodes and websockets, which training jobs have no use for, are not described.
"""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import Field, model_validator

from persia_infra.kube.pod_templates import Toleration
from persia_infra.kube.pods import Resources
from persia_infra.spec.base import DnsLabel, Finding, Image, PodCount, Quantity, Spec, matching, refuse
from persia_infra.spec.quantity import parse_quantity

MAX_PAYLOAD = 64 * 1024 * 1024
"""What nats-server allows at most."""


class NatsConfig(Spec):
    """Limits of the servers."""

    max_payload: int = Field(default=52428800, ge=1024)
    """PERSIA sends whole batches of ID features through NATS; the server's own default is 1 MiB."""
    max_connections: int | None = Field(default=None, ge=1)
    max_pending: int | None = Field(default=None, ge=1)
    max_subscriptions: int | None = Field(default=None, ge=1)
    max_control_line: int | None = Field(default=None, ge=1)
    write_deadline: Annotated[str, matching("[0-9]+(ms|s|m)", "no duration; write one such as 10s or 500ms")] | None = (
        Field(default=None, alias="write_deadline")
    )
    disable_logtime: bool = False
    debug: bool = False
    trace: bool = False

    @model_validator(mode="before")
    @classmethod
    def _refuse_mistaken_key(cls, data: Any) -> Any:  # noqa: ANN401
        if isinstance(data, Mapping) and "writeDeadline" in data:
            said = "the NATS operator reads write_deadline and ignores this; write 'write_deadline'"
            refuse([(("writeDeadline",), said)])
        return data


class NatsPod(Spec):
    """The part of the operator's pod policy that is supported."""

    resources: Resources | None = None
    labels: dict[str, str] = Field(default={})
    annotations: dict[str, str] = Field(default={})
    node_selector: dict[str, str] = Field(default={})
    tolerations: list[Toleration] = Field(default=[])
    anti_affinity: bool = False
    """At most one server a node; without it they are spread as well as the nodes allow."""


_FileName = Annotated[str, matching("[-._a-zA-Z0-9]+", "no key of a Secret; use letters, digits, '-', '_' and '.'")]


class NatsTls(Spec):
    """Certificates from Secrets that are in the namespace already."""

    server_secret: DnsLabel | None = None
    server_secret_ca_file_name: _FileName = Field(default="ca.pem", alias="serverSecretCAFileName")
    server_secret_key_file_name: _FileName = Field(default="server-key.pem")
    server_secret_cert_file_name: _FileName = Field(default="server.pem")
    routes_secret: DnsLabel | None = None
    routes_secret_ca_file_name: _FileName = Field(default="ca.pem", alias="routesSecretCAFileName")
    routes_secret_key_file_name: _FileName = Field(default="route-key.pem")
    routes_secret_cert_file_name: _FileName = Field(default="route.pem")
    verify: bool = False
    """Whether clients need a certificate too."""


class NatsAuth(Spec):
    """Who may connect, from a Secret that is in the namespace already."""

    clients_auth_secret: DnsLabel
    """Its key `clients-auth.json` holds `{"users": [{"username": …, "password": …}]}`, as the operator has it."""
    clients_auth_timeout: int | None = Field(default=None, ge=1)


class JetStream(Spec):
    """Streams that outlive a server, on a disk of its own for each."""

    storage: Quantity
    storage_class_name: DnsLabel | None = None
    memory: Quantity = "256Mi"

    @property
    def storage_bytes(self) -> int:
        """The disk's size."""
        return int(parse_quantity(self.storage))

    @property
    def memory_bytes(self) -> int:
        """What streams in memory may take."""
        return int(parse_quantity(self.memory))


class NatsSpec(Spec):
    """A cluster of `size` servers."""

    kind: Literal["NatsCluster"] = Field(default="NatsCluster", exclude=True)
    mode: Literal["native", "operator"] = Field(default="native", exclude=True)
    size: PodCount = Field(default=3, ge=1)
    version: str | None = None
    server_image: Image = "nats"
    nats_config: NatsConfig = NatsConfig()
    pod: NatsPod = NatsPod()
    tls: NatsTls | None = None
    auth: NatsAuth | None = None
    jetstream: JetStream | None = Field(default=None, exclude=True)
    resources: Resources | None = Field(default=None, exclude=True)
    pool: DnsLabel | None = Field(default=None, exclude=True)

    @property
    def server_version(self) -> str:
        """The image's tag. The operator starts `/nats-server`, which the Alpine images don't have."""
        return self.version or ("2.14.2" if self.mode == "operator" else "2.14.2-alpine")

    @property
    def server_resources(self) -> Resources:
        """What one server gets, wherever it was written."""
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
                f"nats-server starts with at most {MAX_PAYLOAD} bytes (64 MiB); lower it, "
                "and send smaller batches if they need more",
            )
        pending = self.nats_config.max_pending
        if pending is not None and pending < self.nats_config.max_payload:
            yield (
                ("natsConfig", "maxPending"),
                f"{pending} is less than maxPayload, so a client would be cut off by one large message; raise it",
            )
        if self.resources and self.pod.resources:
            yield ("resources",), "is given besides pod.resources; keep one, nobody can tell which should win"
        for key in self.pod.labels:
            if key == "app" or key.startswith(("nats_", "app.kubernetes.io/")):
                yield ("pod", "labels", key), "is how the servers are found; choose another key"
        if self.tls and self.tls.verify and not self.tls.server_secret:
            yield ("tls", "verify"), "asks clients for certificates, but there is no serverSecret; add it"
        if self.jetstream and self.jetstream.storage_bytes < 1:
            yield ("jetstream", "storage"), "is no size of a disk; write one such as 20Gi"
        if self.mode == "operator":
            yield from self._operator_findings()

    def _operator_findings(self) -> Iterator[Finding]:
        if self.jetstream:
            said = "the NATS operator keeps no disks, so it has no JetStream; leave out one of them"
            yield ("jetstream",), said
        if "alpine" in self.server_version:
            yield ("version",), "the NATS operator starts /nats-server, which Alpine images don't have; drop -alpine"

    def notes(self) -> Iterator[Finding]:
        """What a reader of the same manifest elsewhere should know."""
        if self.resources:
            yield (
                ("resources",),
                "the NATS operator ignores it here (it reads pod.resources); it is put there, where it takes effect",
            )
        if self.mode == "operator":
            yield (
                ("mode",),
                "the NATS maintainers advise against their operator for new deployments; leave it out to run natively",
            )
            yield (
                ("mode",),
                "the NATS operator leaves running servers as they are; after a change of anything but size and version "
                "delete their pods one by one, and it makes each anew",
            )


class NatsClusterSpec(NatsSpec):
    """A cluster by itself; a job's own is where the job is."""

    NAME_LIMIT: ClassVar[int] = 54
    """Its headless Service has nine characters more, of the 63 that Kubernetes allows."""

    namespace: DnsLabel | None = Field(default=None, exclude=True)

    @classmethod
    def name_findings(cls, name: str) -> Iterator[Finding]:
        """What is wrong with the name that a cluster is given."""
        if len(name) > cls.NAME_LIMIT:
            yield (
                (),
                f"the name has {len(name)} characters; that of its Service would be too long for Kubernetes; use at "
                f"most {cls.NAME_LIMIT}",
            )
