"""The configuration file of native NATS servers."""

from collections.abc import Iterator

from persia_infra.nats.spec import NatsSpec

CLIENT, CLUSTER, MONITOR = 4222, 6222, 8222
PID_FILE = "/var/run/nats/nats.pid"
AUTH_FOLDER = "/etc/nats-clients-auth"
TLS_FOLDERS = {"server": "/etc/nats-server-tls", "routes": "/etc/nats-routes-tls"}
STORE_FOLDER = "/var/lib/nats"
_SEED_ROUTES = 3
"""How many servers every server connects to first; gossip finds the rest, so growing the cluster restarts none."""


def nats_conf(spec: NatsSpec, cluster_name: str, headless: str) -> str:
    """Returns the file's text, which is the same for all servers."""
    lines = [
        f"port: {CLIENT}",
        f"http_port: {MONITOR}",
        f'pid_file: "{PID_FILE}"',
        *_limits(spec),
        'lame_duck_grace_period: "10s"',
        'lame_duck_duration: "30s"',
        *_tls(spec, "server", ""),
        *_authorization(spec),
        *_jetstream(spec),
        *_cluster(spec, cluster_name, headless),
    ]
    return "\n".join(lines) + "\n"


def _cluster(spec: NatsSpec, cluster_name: str, headless: str) -> list[str]:
    if spec.jetstream and spec.size == 1:
        # In a cluster of one, streams would wait for a second server before they report to be healthy.
        return []
    seeds = min(spec.size, _SEED_ROUTES)
    return [
        "cluster {",
        f'  name: "{cluster_name}"',
        f"  port: {CLUSTER}",
        "  no_advertise: true",
        *_tls(spec, "routes", "  "),
        "  routes: [",
        *(f'    "nats://{cluster_name}-{index}.{headless}:{CLUSTER}"' for index in range(seeds)),
        "  ]",
        "}",
    ]


def _limits(spec: NatsSpec) -> Iterator[str]:
    limits = spec.nats_config
    numbers = {
        "max_payload": limits.max_payload,
        "max_connections": limits.max_connections,
        "max_pending": limits.max_pending,
        "max_subscriptions": limits.max_subscriptions,
        "max_control_line": limits.max_control_line,
    }
    yield from (f"{name}: {number}" for name, number in numbers.items() if number is not None)
    if limits.write_deadline:
        yield f'write_deadline: "{limits.write_deadline}"'
    if limits.disable_logtime:
        yield "logtime: false"
    if limits.debug:
        yield "debug: true"
    if limits.trace:
        yield "trace: true"


def _tls(spec: NatsSpec, part: str, indent: str) -> list[str]:
    tls = spec.tls
    if tls is None or not (tls.server_secret if part == "server" else tls.routes_secret):
        return []
    folder = TLS_FOLDERS[part]
    if part == "server":
        files = (
            tls.server_secret_cert_file_name,
            tls.server_secret_key_file_name,
            tls.server_secret_ca_file_name,
        )
    else:
        files = (tls.routes_secret_cert_file_name, tls.routes_secret_key_file_name, tls.routes_secret_ca_file_name)
    lines = [
        "tls {",
        *(f'  {key}_file: "{folder}/{file}"' for key, file in zip(("cert", "key", "ca"), files, strict=True)),
    ]
    if part == "server" and tls.verify:
        lines.append("  verify: true")
    return [indent + line for line in (*lines, "}")]


def _authorization(spec: NatsSpec) -> list[str]:
    if spec.auth is None:
        return []
    timeout = spec.auth.clients_auth_timeout
    return [
        "authorization {",
        *([f"  timeout: {timeout}"] if timeout else []),
        # The path of an included file is relative to this file's folder.
        f'  include "..{AUTH_FOLDER.removeprefix("/etc")}/clients-auth.json"',
        "}",
    ]


def _jetstream(spec: NatsSpec) -> list[str]:
    if spec.jetstream is None:
        return []
    return [
        "jetstream {",
        f'  store_dir: "{STORE_FOLDER}"',
        f"  max_file_store: {spec.jetstream.storage_bytes}",
        f"  max_memory_store: {spec.jetstream.memory_bytes}",
        "}",
    ]
