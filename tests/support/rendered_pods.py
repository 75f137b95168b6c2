"""Starts what rendered pods say as processes of this machine.

Command, arguments, variables and files of ConfigMaps are the rendered ones. Only what can't be the same outside a
cluster is mapped: names of hosts and ports to loopback, and folders to a temporary one.
"""

import os
import re
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PATIENCE = 60.0


@dataclass(frozen=True)
class RunningPod:
    name: str
    process: "subprocess.Popen[bytes]"
    log: Path
    environment: Mapping[str, str]

    def wait_until(self, says: str) -> str:
        deadline = time.monotonic() + PATIENCE
        while not re.search(says, text := self.log.read_text(errors="replace")):
            assert self.process.poll() is None, f"{self.name} ended:\n{text[-3000:]}"
            assert time.monotonic() < deadline, f"{self.name} never said {says!r}:\n{text[-3000:]}"
            time.sleep(0.1)
        return text


class RenderedPods:
    """Pods of the StatefulSets among rendered objects."""

    def __init__(self, documents: Sequence[dict[str, Any]], folder: Path, programs: Mapping[str, list[str]]) -> None:
        self._sets = {one["metadata"]["name"]: one for one in documents if one["kind"] == "StatefulSet"}
        self._files = {one["metadata"]["name"]: one["data"] for one in documents if one["kind"] == "ConfigMap"}
        self._folder = folder
        self._programs = programs
        self._running: list[RunningPod] = []

    def container(self, name: str) -> dict[str, Any]:
        return self._sets[name]["spec"]["template"]["spec"]["containers"][0]

    def start(
        self,
        name: str,
        ordinal: int,
        *,
        addresses: Mapping[str, str],
        added: Sequence[str] = (),
        variables: Mapping[str, str] | None = None,
    ) -> RunningPod:
        """Starts one pod's process.

        Args:
            name: Of the StatefulSet.
            ordinal: Of the pod.
            addresses: What each address of the cluster is on this machine.
            added: Arguments that name ports of this machine.
            variables: Variables that only this machine needs.
        """
        pod, home = f"{name}-{ordinal}", self._folder / f"{name}-{ordinal}"
        paths = self._mount(self._sets[name]["spec"]["template"]["spec"], home, addresses)
        environment = {
            entry["name"]: _mapped(_value(entry, pod, ordinal), {**addresses, **paths})
            for entry in self.container(name)["env"]
        }
        command = [*self.container(name)["command"], *self.container(name).get("args", [])]
        expanded = [
            re.sub(r"\$\((\w+)\)", lambda found: environment[found[1]], _mapped(word, paths)) for word in command
        ]
        log = home / "log"
        with log.open("wb") as output:
            process = subprocess.Popen(
                [*self._programs[expanded[0]], *expanded[1:], *added],
                env={"PATH": os.environ["PATH"], "TMPDIR": str(home), **environment, **(variables or {})},
                cwd=home,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        running = RunningPod(pod, process, log, environment)
        self._running.append(running)
        return running

    def stop(self) -> None:
        for pod in self._running:
            if pod.process.poll() is None:
                os.killpg(pod.process.pid, 9)
            pod.process.wait()

    def _mount(self, pod: dict[str, Any], home: Path, addresses: Mapping[str, str]) -> dict[str, str]:
        sources = {volume["name"]: volume for volume in pod.get("volumes", [])}
        found = {}
        for mount in pod["containers"][0].get("volumeMounts", []):
            place = home / mount["mountPath"].lstrip("/")
            place.mkdir(parents=True, exist_ok=True)
            found[mount["mountPath"]] = str(place)
        for mount in pod["containers"][0].get("volumeMounts", []):
            if source := sources.get(mount["name"], {}).get("configMap"):
                for file, text in self._files[source["name"]].items():
                    place = home / mount["mountPath"].lstrip("/") / file
                    place.write_text(_mapped(text, {**addresses, **found}))
        return found


def _mapped(text: str, replacements: Mapping[str, str]) -> str:
    """In one pass, the longest first: what was put in is not replaced again."""
    if not replacements:
        return text
    known = "|".join(map(re.escape, sorted(replacements, key=len, reverse=True)))
    return re.sub(known, lambda found: replacements[found[0]], text)


def _value(entry: dict[str, Any], pod: str, ordinal: int) -> str:
    if "valueFrom" not in entry:
        return entry.get("value", "")
    field = entry["valueFrom"]["fieldRef"]["fieldPath"]
    return {"metadata.name": pod, "metadata.labels['apps.kubernetes.io/pod-index']": str(ordinal)}[field]
