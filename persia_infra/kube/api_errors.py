"""Errors of requests to a Kubernetes API server."""

from typing import Any


class ApiError(Exception):
    """A request that failed, or a kubeconfig that cannot be used; the text is written for the user."""


class Unreachable(ApiError):
    """The API server does not answer, or there are no credentials for it."""


class NoSuchKind(ApiError):
    """The API server does not serve this kind (yet)."""


class Refused(ApiError):
    """An error that the API server returned, in its own words."""

    def __init__(self, status: int, answer: dict[str, Any]) -> None:
        self.status = status
        self.reason = str(answer.get("reason") or "")
        self.message = str(answer.get("message") or f"the API server answered {status}")
        details = answer.get("details") or {}
        self.kind = str(details.get("kind") or "")
        self.name = str(details.get("name") or "")
        self.causes: list[dict[str, Any]] = details.get("causes") or []
        super().__init__(self.message)

    @property
    def may_pass(self) -> bool:
        """Whether the request may succeed later, because it needs something that may be about to exist."""
        if self.status == 404:
            return self.kind == "namespaces" or "could not find the requested resource" in self.message
        if self.status == 403:
            missing_yet = ("being terminated", "error looking up service account", "no PriorityClass with name")
            return any(text in self.message for text in missing_yet)
        if self.status == 409:
            return self.reason == "AlreadyExists" or "the object has been modified" in self.message
        return self.status == 503 or (self.status == 500 and "webhook" in self.message)

    def about(self, what: str) -> ApiError:
        """Returns an error that names the object, and lists the causes if there are several."""
        lines = [f"{what}: {self.message}"]
        if len(self.causes) > 1:
            lines += [f"  - {cause.get('field') or '?'}: {cause.get('message')}" for cause in self.causes]
        if self.status == 409 and "conflict" in self.message.lower() and self.reason == "Conflict":
            lines.append(
                "  Another owner set these fields. To take them over, add the annotation "
                'pulumi.com/patchForce: "true"; to leave them, remove them from the program.'
            )
        return ApiError("\n".join(lines))
