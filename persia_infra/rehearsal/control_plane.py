"""A real Kubernetes control plane on loopback, for one rehearsal: etcd, API server, controllers, scheduler, kwok.

All of its files are in one temporary folder that only the user can read, and that is removed at the end. etcd
listens on a socket in that folder; the other parts listen on free ports of 127.0.0.1. Each control plane has
random credentials. RBAC is on: the controllers and the scheduler run with the rights that Kubernetes gives them.

Out of scope: high availability, and anything that needs a container runtime.
"""

import base64
import json
import os
import secrets
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from persia_infra.rehearsal.api_server_files import AUDIT_POLICY, egress_through
from persia_infra.rehearsal.isolation import isolated, python_packages
from persia_infra.rehearsal.loopback import answers, free_ports
from persia_infra.rehearsal.stages import STAGES
from persia_infra.rehearsal.supervisor import PartFailed, Supervisor
from persia_infra.rehearsal.toolchain import Toolchain

UP_WITHIN_SECONDS = 90.0
LOG_LINES_SHOWN = 15
PORT_ATTEMPTS = 3
# etcd requires the form host:port; after unix:// it is the name of a socket in the working folder.
ETCD = "unix://etcd-client:0"

Progress = Callable[[str], None]


class _PortTaken(Exception):
    pass


class ControlPlane:
    """A control plane that runs from `start` to `close`; use it in a `with`.

    Attributes:
        folder: Holds the logs, the kubeconfig and everything else; removed by `close`.
        audit_log: Has one JSON line for each request of a deployed ServiceAccount.
        egress_socket: Where the API server expects a proxy into the cluster network; it is not started by default.
        kubeconfig: The administrator's kubeconfig, with a token.
        programs: Folder with the `gke-gcloud-auth-plugin` that returns this control plane's credentials.
        supervisor: Runs all processes of the rehearsal.
    """

    def __init__(self, folder: Path, tools: Toolchain) -> None:
        self.folder = folder
        self.kubeconfig = folder / "kubeconfig"
        self.programs = folder / "bin"
        self.logs = folder / "logs"
        self.audit_log = self.logs / "audit.log"
        self.egress_socket = folder / "egress.socket"
        self._tools = tools
        try:
            self.supervisor = Supervisor(folder)
        except OSError as error:
            raise PartFailed(f"{error}; set TMPDIR to a folder that you can write to") from None
        self._tokens = {
            name: secrets.token_urlsafe(32)
            for name in ("admin", "kwok", "system:kube-controller-manager", "system:kube-scheduler")
        }

    @classmethod
    def start(cls, tools: Toolchain, progress: Progress = lambda _: None) -> Self:
        """Starts every part and waits until all of them answer.

        Raises:
            PartFailed: A part did not start.
        """
        for attempt in range(1, PORT_ATTEMPTS + 1):
            folder = Path(tempfile.gettempdir()).absolute() / f"persia-infra-{secrets.token_hex(6)}"
            control_plane = cls(folder, tools)
            try:
                control_plane._start_parts(progress)
                return control_plane
            except _PortTaken as error:
                control_plane.close()
                if attempt == PORT_ATTEMPTS:
                    raise PartFailed(str(error)) from None
            except BaseException:
                control_plane.close()
                raise
        raise AssertionError

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends every part and removes the folder."""
        self.supervisor.close()

    @property
    def environment(self) -> dict[str, str]:
        """The variables with which a program reaches the control plane as it would reach GKE, and nothing else.

        PATH leads to the credential plugin. The certificate is trusted as if a public authority had signed it, since
        a kubeconfig for GKE's DNS endpoint names no authority of its own; Go and OpenSSL both read SSL_CERT_FILE.
        """
        folders = [self.programs, *self._tools.search_path, Path(sys.executable).parent]
        path = os.pathsep.join([*map(str, dict.fromkeys(folders)), os.environ.get("PATH", os.defpath)])
        variables = isolated(os.environ, self.folder / "isolated", self._ca_file)
        return variables | {"PATH": path, "KUBECONFIG": str(self.kubeconfig)}

    def run_part(
        self,
        name: str,
        command: list[str | Path],
        is_up: Callable[[], bool],
        environment: dict[str, str] | None = None,
    ) -> int:
        """Starts another process that lives as long as the control plane, and waits until `is_up`.

        Returns:
            The process id.

        Raises:
            PartFailed: The process could not be started, ended, or did not come up in time.
        """
        process = self._begin(name, command, environment)
        try:
            self._wait(name, is_up)
        except _PortTaken as error:
            raise PartFailed(str(error)) from None
        return process

    def stop_part(self, name: str) -> None:
        """Ends a process that `run_part` started."""
        self.supervisor.stop(name)

    def check_alive(self) -> None:
        """Raises PartFailed if a part, or the supervisor of all parts, has ended."""
        for name, code in self.supervisor.ended().items():
            raise PartFailed(self._describe(name, f"ended with code {code}"))

    def _start_parts(self, progress: Progress) -> None:
        for folder in (self.programs, self.logs, self.folder / "etcd", self.folder / "certificates"):
            folder.mkdir(mode=0o700)
        api, controllers, scheduler, kwok = free_ports(4)
        self._begin_etcd()
        self._write_credentials()
        progress("starting etcd and kube-apiserver")
        self._begin_api_server(api)
        self._wait("kube-apiserver", answers(f"https://127.0.0.1:{api}/readyz"))
        self._write_kubeconfigs(api)
        self._write_auth_plugin()
        progress("starting kube-controller-manager, kube-scheduler and kwok")
        self._begin_controllers(controllers)
        self._begin_scheduler(scheduler)
        self._begin_kwok(kwok)
        self._wait("kube-controller-manager", answers(f"https://127.0.0.1:{controllers}/healthz"))
        self._wait("kube-scheduler", answers(f"https://127.0.0.1:{scheduler}/healthz"))
        self._wait("kwok", answers(f"http://127.0.0.1:{kwok}/healthz"))

    def _begin_etcd(self) -> None:
        client, peer = ETCD, "unix://etcd-peer:0"
        self._begin(
            "etcd",
            [
                self._tools["etcd"],
                f"--data-dir={self.folder}/etcd",
                f"--listen-client-urls={client}",
                f"--advertise-client-urls={client}",
                f"--listen-peer-urls={peer}",
                f"--initial-advertise-peer-urls={peer}",
                f"--initial-cluster=default={peer}",
                "--unsafe-no-fsync",
                "--log-level=warn",
            ],
        )

    def _begin_api_server(self, port: int) -> None:
        key = self.folder / "service-accounts.key"
        audit_policy = self.folder / "audit-policy.json"
        audit_policy.write_text(json.dumps(AUDIT_POLICY))
        egress = self.folder / "egress.json"
        egress.write_text(json.dumps(egress_through(self.egress_socket)))
        self._begin(
            "kube-apiserver",
            [
                self._tools["kube-apiserver"],
                f"--etcd-servers={ETCD}",
                "--bind-address=127.0.0.1",
                f"--secure-port={port}",
                f"--cert-dir={self.folder}/certificates",
                f"--token-auth-file={self.folder}/tokens.csv",
                "--authorization-mode=RBAC",
                "--enable-admission-plugins=ExtendedResourceToleration",
                f"--service-account-key-file={key}",
                f"--service-account-signing-key-file={key}",
                "--service-account-issuer=https://kubernetes.default.svc",
                "--service-cluster-ip-range=10.0.0.0/16",
                "--advertise-address=192.0.2.1",
                "--endpoint-reconciler-type=none",
                "--allow-privileged=true",
                f"--audit-policy-file={audit_policy}",
                f"--audit-log-path={self.audit_log}",
                f"--egress-selector-config-file={egress}",
            ],
            # Less frequent garbage collection: it starts in two thirds of the time, for 100 MB more memory.
            _quiet_environment(self.folder) | {"GOGC": "400"},
        )

    def _begin_controllers(self, port: int) -> None:
        self._begin(
            "kube-controller-manager",
            [
                self._tools["kube-controller-manager"],
                f"--kubeconfig={self._kubeconfig_of('system:kube-controller-manager')}",
                f"--service-account-private-key-file={self.folder}/service-accounts.key",
                f"--root-ca-file={self._ca_file}",
                "--use-service-account-credentials",
                "--bind-address=127.0.0.1",
                f"--secure-port={port}",
                f"--cert-dir={self.folder}/certificates",
                "--leader-elect=false",
                "--concurrent-statefulset-syncs=20",
                "--concurrent-endpoint-syncs=10",
                "--concurrent-service-endpoint-syncs=10",
                "--kube-api-qps=300",
                "--kube-api-burst=600",
            ],
        )

    def _begin_scheduler(self, port: int) -> None:
        configuration = self.folder / "scheduler.json"
        write_private(
            configuration,
            json.dumps(
                {
                    "apiVersion": "kubescheduler.config.k8s.io/v1",
                    "kind": "KubeSchedulerConfiguration",
                    "leaderElection": {"leaderElect": False},
                    "clientConnection": {
                        "kubeconfig": str(self._kubeconfig_of("system:kube-scheduler")),
                        "qps": 500,
                        "burst": 1000,
                    },
                }
            ),
        )
        self._begin(
            "kube-scheduler",
            [
                self._tools["kube-scheduler"],
                f"--config={configuration}",
                "--bind-address=127.0.0.1",
                f"--secure-port={port}",
                f"--cert-dir={self.folder}/certificates",
            ],
        )

    def _begin_kwok(self, port: int) -> None:
        stages = self.folder / "stages.yaml"
        stages.write_text("\n---\n".join(json.dumps(stage) for stage in STAGES))
        self._begin(
            "kwok",
            [
                self._tools["kwok"],
                f"--kubeconfig={self._kubeconfig_of('kwok')}",
                f"--config={stages}",
                "--manage-all-nodes=true",
                "--node-lease-duration-seconds=40",
                "--node-ip=10.128.0.2",
                "--cidr=10.64.0.0/12",
                f"--server-address=127.0.0.1:{port}",
            ],
        )

    def _begin(self, name: str, command: list[str | Path], environment: dict[str, str] | None = None) -> int:
        try:
            return self.supervisor.start(
                name,
                command,
                log=self.logs / f"{name}.log",
                environment=environment or _quiet_environment(self.folder),
            )
        except OSError as error:
            raise PartFailed(f"{name} cannot be started, so the rehearsal stops: {error}") from None

    def _wait(self, name: str, is_up: Callable[[], bool]) -> None:
        deadline = time.monotonic() + UP_WITHIN_SECONDS
        while not is_up():
            ended = self.supervisor.ended()
            for part in {name, "etcd"} & set(ended):
                if "address already in use" in self._last_lines(part):
                    raise _PortTaken(self._describe(part, "cannot listen because another process has its port"))
                raise PartFailed(self._describe(part, f"ended with code {ended[part]}"))
            if time.monotonic() > deadline:
                raise PartFailed(self._describe(name, f"did not start within {UP_WITHIN_SECONDS:.0f} s"))
            time.sleep(0.1)

    def _describe(self, name: str, what: str) -> str:
        return f"{name} {what}, so the rehearsal stops. The last lines of its log:\n{self._last_lines(name)}"

    def _last_lines(self, name: str) -> str:
        log = self.logs / f"{name}.log"
        lines = log.read_text(errors="replace").splitlines() if log.exists() else []
        text = "\n".join(lines[-LOG_LINES_SHOWN:]) or "(empty)"
        for token in self._tokens.values():
            text = text.replace(token, "[token]")
        return text

    @property
    def _ca_file(self) -> Path:
        return self.folder / "certificates" / "apiserver.crt"

    def _write_credentials(self) -> None:
        groups = {"admin": "system:masters", "kwok": "system:masters"}
        lines = [
            f'{token},{name},{name},"{groups.get(name, "system:authenticated")}"\n'
            for name, token in self._tokens.items()
        ]
        write_private(self.folder / "tokens.csv", "".join(lines))
        write_private(self.folder / "service-accounts.key", _new_signing_key())

    def _kubeconfig_of(self, user: str) -> Path:
        return self.kubeconfig if user == "admin" else self.folder / f"{user.removeprefix('system:')}.kubeconfig"

    def _write_kubeconfigs(self, port: int) -> None:
        authority = base64.b64encode(self._ca_file.read_bytes()).decode()
        for user, token in self._tokens.items():
            cluster = {"server": f"https://127.0.0.1:{port}", "certificate-authority-data": authority}
            document = {
                "apiVersion": "v1",
                "kind": "Config",
                "clusters": [{"name": "rehearsal", "cluster": cluster}],
                "users": [{"name": user, "user": {"token": token}}],
                "contexts": [{"name": "rehearsal", "context": {"cluster": "rehearsal", "user": user}}],
                "current-context": "rehearsal",
            }
            write_private(self._kubeconfig_of(user), json.dumps(document, indent=1))

    def _write_auth_plugin(self) -> None:
        """Writes a plugin that prints a file which only the user can read, so that no command line has the token."""
        credential: dict[str, Any] = {
            "apiVersion": "client.authentication.k8s.io/v1beta1",
            "kind": "ExecCredential",
            "status": {"token": self._tokens["admin"]},
        }
        answer = self.folder / "credential.json"
        write_private(answer, json.dumps(credential))
        plugin = self.programs / "gke-gcloud-auth-plugin"
        plugin.write_text(f"#!/bin/sh\nexec cat '{answer}'\n")
        plugin.chmod(0o700)


def _quiet_environment(folder: Path) -> dict[str, str]:
    """The variables of the parts, without the user's proxy, credentials or home folder."""
    variables = {"PATH": os.environ.get("PATH", os.defpath), "HOME": str(folder), "TMPDIR": str(folder)}
    return variables | python_packages()


def write_private(file: Path, text: str) -> None:
    """Writes a file that only the user can read."""
    with open(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as opened:  # noqa: PTH123
        opened.write(text)


def _new_signing_key() -> str:
    key = ec.generate_private_key(ec.SECP256R1())
    encoding, form = serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL
    return key.private_bytes(encoding, form, serialization.NoEncryption()).decode()
