"""What a recorded PERSIA job gives to its roles' pods."""

from typing import Any


def pod(recording: Any, role: str) -> dict[str, Any]:
    return recording.one("StatefulSet", f"dev-ads-{role}").inputs["spec"]["template"]["spec"]


def container(recording: Any, role: str) -> dict[str, Any]:
    (only,) = pod(recording, role)["containers"]
    return only


def env(recording: Any, role: str) -> dict[str, Any]:
    return {entry["name"]: entry.get("value", entry.get("valueFrom")) for entry in container(recording, role)["env"]}
