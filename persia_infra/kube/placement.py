"""Where pods may run: the labels a node needs and the taints a pod has to tolerate."""

from dataclasses import dataclass
from typing import Literal

from persia_infra.spec.base import Spec


class Taint(Spec):
    """Keeps pods that do not tolerate it off a node."""

    key: str
    """The key of the taint, such as `dedicated`."""
    value: str = ""
    """The value of the taint; empty by default."""
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"]
    """What happens to pods that do not tolerate the taint."""


@dataclass(frozen=True)
class Placement:
    """What a pod needs in order to run on the nodes of one pool and nowhere else."""

    pool: str
    """The name of the pool."""
    node_selector: dict[str, str]
    """Labels that the node must have."""
    taints: tuple[Taint, ...]
    """Taints that the pod has to tolerate."""

    @property
    def tolerations(self) -> list[dict[str, str]]:
        """Returns one toleration per taint, as a pod template has them."""
        return [
            {"key": taint.key, "operator": "Equal", "value": taint.value, "effect": taint.effect}
            if taint.value
            else {"key": taint.key, "operator": "Exists", "effect": taint.effect}
            for taint in self.taints
        ]
