"""Whether one pod fits on an empty node of a pool."""

from collections.abc import Iterator, Mapping
from decimal import Decimal

from persia_infra.gke.pools import NodePoolSpec
from persia_infra.spec.quantity import format_quantity

_BINARY_RESOURCES = ("memory", "ephemeral-storage")


def misfits(pool: NodePoolSpec, pool_name: str, requests: Mapping[str, Decimal]) -> Iterator[str]:
    """What a pod asks for beyond what a node of the pool offers, as one message per resource.

    Args:
        pool: The pool.
        pool_name: The pool's name.
        requests: What the scheduler reserves for the pod.
    """
    for resource, wanted in requests.items():
        offered = pool.allocatable.get(resource)
        if offered is None or wanted > offered:
            binary = resource in _BINARY_RESOURCES
            available = "none" if offered is None else _shown(offered, binary=binary)
            yield (
                f"asks for {_shown(wanted, binary=binary)} {resource}, but a {pool.machine_type} node of pool "
                f"{pool_name} offers pods {available}, so it would stay Pending forever; "
                "ask for less or choose a larger machineType"
            )


def _shown(amount: Decimal, *, binary: bool) -> str:
    if binary and amount >= 2**30:
        return f"{amount / 2**30:.2f}Gi"
    return format_quantity(amount, binary=binary)
