"""Runs components without an engine and keeps what they asked it for."""

import asyncio
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from persia_components import Job
from pulumi.runtime import mocks, stack

from persia_infra.stack import parse_environment


@dataclass(frozen=True)
class Registered:
    type: str
    name: str
    custom: bool
    parent: str
    provider: str
    depends_on: frozenset[str]
    ignored: tuple[str, ...]
    protect: bool
    inputs: dict[str, Any]
    asked: dict[str, Any]
    """What the program gave, without what was computed."""
    protected: bool
    replaced_by: tuple[str, ...]


@dataclass
class Recording:
    """Everything that a program registered, by type and name."""

    all: list[Registered] = field(default_factory=list)
    outputs: dict[str, Any] = field(default_factory=dict)

    def one(self, kind: str, name: str) -> Registered:
        found = [r for r in self.all if r.type.endswith(f":{kind}") and r.name == name]
        assert len(found) == 1, f"{kind} {name}: {len(found)} found among {[(r.type, r.name) for r in self.all]}"
        return found[0]

    def names(self, kind: str) -> set[str]:
        return {r.name for r in self.all if r.type.endswith(f":{kind}")}


class _Answers(mocks.Mocks):
    def new_resource(self, args: mocks.MockResourceArgs) -> tuple[str | None, dict[str, Any]]:
        computed = {"email": f"{args.name}@example.com", "endpoint": "198.51.100.7", "name": f"{args.name}-1a2b3c4"}
        if args.typ == "gcp:container/cluster:Cluster":
            computed["masterAuth"] = {"clusterCaCertificate": "Q0E="}  # type: ignore[assignment]
            dns = {"dnsEndpointConfig": {"endpoint": "gke-1a2b.us-central1.gke.goog"}}
            computed["controlPlaneEndpointsConfig"] = dns  # type: ignore[assignment]
            return f"{args.name}-id", {**args.inputs, **computed}
        return f"{args.name}-id", {**computed, **args.inputs}

    def call(self, args: mocks.MockCallArgs) -> tuple[dict[str, Any], None]:
        raise AssertionError(f"components look nothing up, but {args.token} was called")


class _Monitor(mocks.MockMonitor):
    def __init__(self, answers: mocks.Mocks, recording: Recording) -> None:
        super().__init__(answers)
        self.recording = recording

    def RegisterResource(self, request: Any) -> Any:  # noqa: N802
        answer = super().RegisterResource(request)
        if request.type != "pulumi:pulumi:Stack":
            registered = self.resources.get(answer.urn)
            assert registered is not None
            self.recording.all.append(
                Registered(
                    type=request.type,
                    name=request.name,
                    custom=request.custom,
                    parent=request.parent.rpartition("::")[2],
                    provider=request.provider.rpartition("::")[0].rpartition("::")[2],
                    depends_on=frozenset(urn.rpartition("::")[2] for urn in request.dependencies),
                    ignored=tuple(request.ignoreChanges),
                    protect=request.protect,
                    inputs=registered.state,
                    asked=mocks.rpc.deserialize_properties(request.object),
                    protected=request.protect,
                    replaced_by=tuple(request.replaceOnChanges),
                )
            )
        return answer

    def RegisterResourceOutputs(self, request: Any) -> Any:  # noqa: N802
        name = request.urn.rpartition("::")[2]
        self.recording.outputs[name] = mocks.rpc.deserialize_properties(request.outputs)
        return super().RegisterResourceOutputs(request)


def _discard(_made: object) -> None:
    return None


@pytest.fixture
def record() -> Callable[[Callable[[], object]], Recording]:
    """Each recording has a thread and an event loop of its own: nothing that one queued can run in the next."""

    def run(program: Callable[[], object]) -> Recording:
        recording, failure = Recording(), []

        def work() -> None:
            loop = asyncio.new_event_loop()
            asyncio.set_event_loop(loop)
            answers = _Answers()
            try:
                mocks.set_mocks(answers, project="p", stack="s", monitor=_Monitor(answers, recording))
                loop.run_until_complete(stack.run_pulumi_func(lambda: _discard(program())))
            except BaseException as error:
                failure.append(error)
            finally:
                loop.close()

        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        if failure:
            raise failure[0]
        return recording

    return run


@pytest.fixture
def run_ads(description: dict[str, Any], record: Callable[..., Recording]) -> Callable[..., Recording]:
    """The PERSIA job of `description`, with changes of it."""

    def build(**changes: Any) -> Recording:
        described = {**description["jobs"]["ads"], **changes}
        spec = parse_environment({**description, "operators": {"persia": {}}, "jobs": {"ads": described}})
        job = spec.jobs["ads"]
        return record(
            lambda: Job("dev-ads", job, namespace="training", object_name="ads", placements=spec.placements("ads"))
        )

    return build
