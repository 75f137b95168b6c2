"""Google's NVIDIA driver installer for GPU nodes whose driver GKE does not install."""

import pulumi

from persia_components._objects import ObjectsComponent
from persia_infra.gke.driver_objects import installer_objects
from persia_infra.gke.drivers import Installer


class DriverInstaller(ObjectsComponent):
    """A DaemonSet that installs the driver once on each node of its pools, then sleeps."""

    def __init__(self, name: str, spec: Installer, *, opts: pulumi.ResourceOptions | None = None) -> None:
        """Declares the DaemonSet.

        Args:
            name: The component's name, which is also the DaemonSet's logical name.
            spec: The image and driver version of the nodes, and the pools.
            opts: Options of the component.
        """
        super().__init__(name, installer_objects(spec), opts=opts)
