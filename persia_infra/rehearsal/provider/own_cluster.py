"""Keeps the simulated kubernetes package to the cluster of its rehearsal."""

from pathlib import Path
from urllib.parse import urlsplit

from persia_infra.kube.kubeconfig import kubeconfig_text, server_of
from persia_infra.rehearsal.provider.package import ProviderError


def refuse_other_clusters(rehearsal: Path, kubeconfig: str | None, context: str | None) -> None:
    """Checks that a kubeconfig and a context mean the cluster of the rehearsal; nothing that they name is run.

    Args:
        rehearsal: The kubeconfig of the rehearsal's administrator.
        kubeconfig: The program's kubeconfig as text or as a path, if it sets one.
        context: The program's context, if it sets one.

    Raises:
        ProviderError: They mean another cluster.
        ApiError: They cannot be read.
    """
    if not kubeconfig and not context:
        return
    own = server_of(rehearsal.read_text(), None)
    server = server_of(kubeconfig_text(kubeconfig or str(rehearsal)) or "", context)
    if _origin(server) != _origin(own):
        raise ProviderError(
            f"kubeconfig: the server {server} is not the cluster of this rehearsal ({own}), so nothing is deployed to "
            "it: build the provider's kubeconfig from the outputs of the cluster that the program creates, and set "
            "neither kubernetes:kubeconfig nor kubernetes:context"
        )


def _origin(server: str) -> tuple[str, str | None, int]:
    address = urlsplit(server)
    return address.scheme, address.hostname, address.port or 443
