"""The program of the sleep operator: creates the pods of every SleepJob, and writes down how many there are.

It needs nothing but Python, as the operator of another project would need nothing of this one.
"""

import base64
import http
import http.client
import json
import os
import ssl
import sys
import time
from pathlib import Path
from typing import Any

JOBS = "/apis/toys.example.com/v1/{}sleepjobs{}"


class Api:
    """The API server that KUBECONFIG names."""

    def __init__(self) -> None:
        config = json.loads(Path(os.environ["KUBECONFIG"]).read_text())
        cluster = config["clusters"][0]["cluster"]
        self._address = cluster["server"].removeprefix("https://")
        self._token = config["users"][0]["user"]["token"]
        self._context = ssl.create_default_context(
            cadata=base64.b64decode(cluster["certificate-authority-data"]).decode()
        )

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        kind = "application/merge-patch+json" if method == "PATCH" else "application/json"
        headers = {"Authorization": f"Bearer {self._token}", "Content-Type": kind}
        connection = http.client.HTTPSConnection(self._address, context=self._context, timeout=10)
        try:
            connection.request(method, path, None if body is None else json.dumps(body), headers)
            answer = connection.getresponse()
            content = answer.read().decode()
        finally:
            connection.close()
        if answer.status >= http.HTTPStatus.BAD_REQUEST:
            raise OSError(f"{method} {path}: {content}")
        return json.loads(content)


def create_pods(api: Api, job: dict[str, Any]) -> None:
    name, namespace, spec = job["metadata"]["name"], job["metadata"]["namespace"], job["spec"]
    pods = f"/api/v1/namespaces/{namespace}/pods"
    existing = {pod["metadata"]["name"] for pod in api.ask("GET", pods)["items"]}
    owner = {"apiVersion": "toys.example.com/v1", "kind": "SleepJob", "name": name, "uid": job["metadata"]["uid"]}
    for index in range(spec["sleepers"]):
        pod_name = f"{name}-sleeper-{index}"
        if pod_name not in existing:
            labelled = {**spec["template"].get("metadata", {}), "name": pod_name, "ownerReferences": [owner]}
            api.ask("POST", pods, {"metadata": labelled, "spec": spec["template"]["spec"]})
    if (job.get("status") or {}).get("sleepers") != spec["sleepers"]:
        path = JOBS.format(f"namespaces/{namespace}/", f"/{name}/status")
        api.ask("PATCH", path, {"status": {"sleepers": spec["sleepers"]}})


def main() -> None:
    every = float(next(argument for argument in sys.argv[1:] if argument.startswith("--every=")).partition("=")[2])
    api = Api()
    while True:
        try:
            for job in api.ask("GET", JOBS.format("", ""))["items"]:
                if "deletionTimestamp" not in job["metadata"]:
                    create_pods(api, job)
        except OSError as error:
            print(f"again: {error}", file=sys.stderr, flush=True)
        time.sleep(every)


if __name__ == "__main__":
    main()
