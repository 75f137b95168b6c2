"""Pulumi components for training environments on GKE."""

from persia_components.environment import Environment
from persia_components.gke.cluster import Cluster
from persia_components.gke.drivers import DriverInstaller
from persia_components.gke.network import Network
from persia_components.gke.node_pool import NodePool
from persia_components.gke.project import ProjectApis
from persia_components.jobs import Job
from persia_components.nats import NatsCluster
from persia_components.operators import Operator

__all__ = [
    "Cluster",
    "DriverInstaller",
    "Environment",
    "Job",
    "NatsCluster",
    "Network",
    "NodePool",
    "Operator",
    "ProjectApis",
]
