"""The provider process: serves the simulated packages until it receives SIGTERM or SIGINT."""

import argparse
import json
import logging
import os
import signal
import threading
from collections.abc import Callable
from pathlib import Path

from persia_infra.rehearsal.provider.cloud import Cloud
from persia_infra.rehearsal.provider.gcp import Gcp
from persia_infra.rehearsal.provider.kubernetes import Kubernetes
from persia_infra.rehearsal.provider.package import Package
from persia_infra.rehearsal.provider.server import ProviderServer


def main() -> None:
    """Runs the command line."""
    parser = argparse.ArgumentParser(prog="python -m persia_infra.rehearsal.provider", description=__doc__)
    parser.add_argument("--kubeconfig", type=Path, required=True, help="the administrator's, of the control plane")
    parser.add_argument("--ports-file", type=Path, required=True, help="written once every package is served")
    arguments = parser.parse_args()
    if not arguments.kubeconfig.is_file():
        parser.error(f"--kubeconfig: the file {arguments.kubeconfig} does not exist")
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(name)s: %(message)s")

    cloud = Cloud(arguments.kubeconfig)
    packages: dict[str, Callable[[], Package]] = {
        "gcp": lambda: Gcp(cloud),
        "kubernetes": lambda: Kubernetes(arguments.kubeconfig),
    }
    stop_requested = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop_requested.set())
    cloud.start()
    servers = {name: ProviderServer(make) for name, make in packages.items()}
    unfinished = arguments.ports_file.with_name(f"{arguments.ports_file.name}.{os.getpid()}")
    unfinished.write_text(json.dumps({name: server.port for name, server in servers.items()}))
    unfinished.replace(arguments.ports_file)
    stop_requested.wait()
    for server in servers.values():
        server.stop()
    cloud.stop()


if __name__ == "__main__":
    main()
