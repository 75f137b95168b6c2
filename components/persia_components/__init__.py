"""Pulumi components for training environments on GKE."""

from importlib import import_module
from typing import TYPE_CHECKING

from persia_components.environment import Environment
from persia_components.gke.cluster import Cluster
from persia_components.gke.drivers import DriverInstaller
from persia_components.gke.network import Network
from persia_components.gke.node_pool import NodePool
from persia_components.gke.project import ProjectApis
from persia_components.mpi_job import MpiJob
from persia_components.nats import NatsCluster
from persia_components.paddle_job import PaddleJob
from persia_components.persia_job import PersiaJob
from persia_components.single_node_job import SingleNodeJob
from persia_components.training_job import TrainingJob

if TYPE_CHECKING:
    from persia_components.operators.mpi import MpiOperator
    from persia_components.operators.nats import NatsOperator
    from persia_components.operators.paddle import PaddleOperator
    from persia_components.operators.persia import PersiaOperator
    from persia_components.operators.volcano import Volcano

__all__ = [
    "Cluster",
    "DriverInstaller",
    "Environment",
    "MpiJob",
    "MpiOperator",
    "NatsCluster",
    "NatsOperator",
    "Network",
    "NodePool",
    "PaddleJob",
    "PaddleOperator",
    "PersiaJob",
    "PersiaOperator",
    "ProjectApis",
    "SingleNodeJob",
    "TrainingJob",
    "Volcano",
]

_OPERATORS = {
    "MpiOperator": "mpi",
    "NatsOperator": "nats",
    "PaddleOperator": "paddle",
    "PersiaOperator": "persia",
    "Volcano": "volcano",
}


def __getattr__(name: str) -> object:
    """Loads an operator when it is first asked for: few programs install one."""
    if name not in _OPERATORS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.operators.{_OPERATORS[name]}"), name)
