"""Operators as processes of this machine, each with the rights of its own ServiceAccount and no others.

kwok plays an operator's pod, so nothing runs in it. What would run is started here instead, from what was
deployed: the Deployment's arguments, variables and mounted files, and a token of its ServiceAccount. Only what
can't be the same outside a pod differs: addresses to listen on, and where the credentials are.

A webhook's process is reached by the API server through the Service that its configuration names.
"""

import base64
import json
import re
import socket
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from persia_infra.kube.programs import OperatorProgram
from persia_infra.rehearsal.control_plane import ControlPlane, PartFailed, answers, free_ports, write_private
from persia_infra.rehearsal.observation import Observer
from persia_infra.rehearsal.toolchain import Toolchain

TOKEN_SECONDS = 24 * 3600

Progress = Callable[[str], None]


class OperatorProcesses:
    """Runs the operators that are deployed on one control plane."""

    def __init__(self, control_plane: ControlPlane, tools: Toolchain, programs: Iterable[OperatorProgram]) -> None:
        """Starts nothing yet.

        Args:
            control_plane: Where the operators are deployed.
            tools: Holds the operators' programs.
            programs: How the program of each Deployment is started.
        """
        self._control_plane = control_plane
        self._tools = tools
        self._programs = {program.deployment: program for program in programs}
        self._observer = Observer(control_plane.kubeconfig)
        self._running: dict[str, int] = {}
        log = control_plane.audit_log
        self._log_begins = log.stat().st_size if log.exists() else 0

    @property
    def running(self) -> dict[str, int]:
        """Names and process ids."""
        return dict(self._running)

    def memory(self) -> dict[str, int]:
        """What each process holds in memory now, in MiB; nothing where the system has no /proc."""
        held = {}
        for name, process in self._running.items():
            status = Path(f"/proc/{process}/status")
            resident = re.search(r"VmRSS:\s+(\d+)", status.read_text()) if status.exists() else None
            if resident:
                held[name] = int(resident[1]) // 1024
        return held

    def deployed(self) -> list[tuple[str, str]]:
        """Namespace and name of the deployed operators whose programs are known."""
        found = self._observer.get("/apis/apps/v1/deployments")["items"]
        names = [(item["metadata"]["namespace"], item["metadata"]["name"]) for item in found]
        known = [(namespace, name) for namespace, name in names if name in self._programs]
        # Webhooks first: what the others request may have to pass them.
        return sorted(known, key=lambda each: self._programs[each[1]].service is None)

    def start_all(self, progress: Progress) -> list[str]:
        """Starts what is deployed, known and not running yet; the names."""
        started: list[str] = []
        failed: set[str] = set()
        while (found := self._next()) is not None:
            namespace, name = found
            progress(f"starting {name}")
            try:
                self.start(namespace, name)
                started.append(name)
            except PartFailed:
                if name in failed:
                    raise
                # Once more, as its pod would be: what it needed may have been deployed meanwhile.
                failed.add(name)
                self._control_plane.stop_part(name)
        return started

    def _next(self) -> tuple[str, str] | None:
        startable = (
            (namespace, name)
            for namespace, name in self.deployed()
            if name not in self._running and self._has_its_service(namespace, self._programs[name])
        )
        return next(startable, None)

    def stop_all(self) -> None:
        """Ends all of them."""
        for name in list(self._running):
            self.stop(name)

    def start(self, namespace: str, name: str, *, program: str | None = None) -> int:
        """Starts the program of one Deployment and waits until it says that it is up; its process id.

        Args:
            namespace: Of the Deployment.
            name: Of the Deployment.
            program: Another build of it than the pinned one.
        """
        known = self._programs[name]
        deployment = self._observer.get(f"/apis/apps/v1/namespaces/{namespace}/deployments/{name}")
        pod = deployment["spec"]["template"]["spec"]
        container = pod["containers"][0]
        account = pod["serviceAccountName"]
        folder = self._control_plane.folder / "operators" / name
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        kubeconfig = self._kubeconfig(namespace, account, folder / "kubeconfig")
        port, other_port = free_ports(2)
        arguments = [text for text in container.get("args", []) if text not in known.left_out_arguments]
        variables = {
            entry["name"]: entry.get("value") or _field(entry, namespace, name) for entry in container.get("env", [])
        }
        for mounted, files in self._files(namespace, pod, container, folder):
            arguments = [text.replace(mounted, str(files)) for text in arguments]
            variables = {key: text.replace(mounted, str(files)) for key, text in variables.items()}
        if known.kubeconfig_flag:
            arguments.append(f"{known.kubeconfig_flag}={kubeconfig}")
        arguments += [text.format(port=port, other_port=other_port) for text in known.added_arguments]
        variables |= {"KUBECONFIG": str(kubeconfig), "HOME": str(folder), "TMPDIR": str(folder)}
        if known.service:
            self._route(namespace, known.service, port)
        is_up = self._is_up(known, namespace, account, port)
        command = [self._tools[program or known.program], *arguments]
        self._running[name] = self._control_plane.run_part(name, command, is_up, variables)
        return self._running[name]

    def stop(self, name: str) -> None:
        """Ends the process of one Deployment."""
        self._control_plane.stop_part(name)
        self._running.pop(name, None)

    def requests(self, namespace: str, account: str) -> list[dict[str, Any]]:
        """What a ServiceAccount has asked for since this object was made, as the server's audit log has it."""
        log = self._control_plane.audit_log
        user = f"system:serviceaccount:{namespace}:{account}"
        lines = log.read_bytes()[self._log_begins :].decode().splitlines() if log.exists() else []
        # The last line may be half-written.
        events = (json.loads(line) for line in lines if user in line and line.endswith("}"))
        return [event for event in events if event["user"]["username"] == user]

    def _has_its_service(self, namespace: str, known: OperatorProgram) -> bool:
        if known.service is None:
            return True
        found = self._observer.get(f"/api/v1/namespaces/{namespace}/services")["items"]
        return known.service in {item["metadata"]["name"] for item in found}

    def _is_up(self, known: OperatorProgram, namespace: str, account: str, port: int) -> Callable[[], bool]:
        if known.health:
            return answers(known.health.format(port=port))
        if known.service:
            return lambda: _listens(port)
        return lambda: bool(self.requests(namespace, account))

    def _route(self, namespace: str, service: str, port: int) -> None:
        """From now on the API server finds the process behind the Service."""
        folder = self._control_plane.folder
        routes = folder / "routes.json"
        found = self._observer.get(f"/api/v1/namespaces/{namespace}/services/{service}")["spec"]
        known: dict[str, int] = json.loads(routes.read_text()) if routes.exists() else {}
        known[f"{found['clusterIP']}:{found['ports'][0]['port']}"] = port
        routes.write_text(json.dumps(known))
        proxy = self._control_plane.egress_socket
        if not proxy.exists():
            command: list[str | Path] = [sys.executable, "-P", "-m", "persia_infra.rehearsal.cluster_network"]
            self._control_plane.run_part("cluster-network", [*command, proxy, routes], proxy.exists)

    def _kubeconfig(self, namespace: str, account: str, file: Path) -> Path:
        wanted = {"spec": {"expirationSeconds": TOKEN_SECONDS}}
        path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{account}/token"
        document = json.loads(self._control_plane.kubeconfig.read_text())
        document["users"][0]["user"] = {"token": self._observer.post(path, wanted)["status"]["token"]}
        document["contexts"][0]["context"]["namespace"] = namespace
        write_private(file, json.dumps(document))
        return file

    def _files(
        self, namespace: str, pod: dict[str, Any], container: dict[str, Any], folder: Path
    ) -> Iterator[tuple[str, Path]]:
        volumes = {volume["name"]: volume for volume in pod.get("volumes", [])}
        for mount in container.get("volumeMounts", []):
            volume = volumes[mount["name"]]
            target = folder / mount["name"]
            target.mkdir(mode=0o700, exist_ok=True)
            yield mount["mountPath"], target
            for key, content in self._content(namespace, volume).items():
                write_private(target / key, content)

    def _content(self, namespace: str, volume: dict[str, Any]) -> dict[str, str]:
        if source := volume.get("configMap"):
            return self._observer.get(f"/api/v1/namespaces/{namespace}/configmaps/{source['name']}").get("data", {})
        if source := volume.get("secret"):
            data = self._observer.get(f"/api/v1/namespaces/{namespace}/secrets/{source['secretName']}")["data"]
            return {key: base64.b64decode(value).decode() for key, value in data.items()}
        return {}


def _listens(port: int) -> bool:
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=1):
            return True
    except OSError:
        return False


def _field(entry: dict[str, Any], namespace: str, name: str) -> str:
    """The fields of its own pod that an operator asks for; the pod itself is kwok's."""
    path = entry["valueFrom"]["fieldRef"]["fieldPath"]
    return {"metadata.namespace": namespace, "metadata.name": name}[path]
