"""What the API server of a rehearsal records, and how it reaches into the cluster network."""

from pathlib import Path
from typing import Any

# What deployed ServiceAccounts asked for; the control plane's own parts would bury it.
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
    connection = {"proxyProtocol": "HTTPConnect", "transport": {"uds": {"udsName": str(proxy)}}}
    return {
        "apiVersion": "apiserver.k8s.io/v1beta1",
        "kind": "EgressSelectorConfiguration",
        "egressSelections": [{"name": "cluster", "connection": connection}],
    }
