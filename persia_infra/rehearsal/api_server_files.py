"""Configuration files of a rehearsal's API server: its audit policy and its way into the cluster network."""

from pathlib import Path
from typing import Any

# Only requests of deployed ServiceAccounts: those of the control plane itself would drown them.
AUDIT_POLICY: dict[str, Any] = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [
        {"level": "None", "userGroups": ["system:serviceaccounts:kube-system"]},
        {"level": "Metadata", "userGroups": ["system:serviceaccounts"]},
        {"level": "None"},
    ],
}


def egress_through(proxy: Path) -> dict[str, Any]:
    """Returns the configuration that sends connections into the cluster network through a proxy's socket."""
    connection = {"proxyProtocol": "HTTPConnect", "transport": {"uds": {"udsName": str(proxy)}}}
    return {
        "apiVersion": "apiserver.k8s.io/v1beta1",
        "kind": "EgressSelectorConfiguration",
        "egressSelections": [{"name": "cluster", "connection": connection}],
    }
