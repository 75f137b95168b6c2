"""Our definitions of other projects' kinds, field by field against the ones that those projects publish."""

import re
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from pydantic import ValidationError
from pydantic.alias_generators import to_camel

from persia_infra.jobs.paddle import NEWER_THAN_OPERATOR
from persia_infra.kube.crd import Definition, schema_of
from persia_infra.kube.pod_templates import PodTemplate
from persia_infra.nats.objects import nats_objects
from persia_infra.nats.spec import NatsSpec
from persia_infra.operators import mpi, paddle, persia
from persia_infra.operators.volcano import kinds as volcano
from persia_infra.rehearsal.operator_tools import ensure_persia
from tests.support.kube_objects import Objects
from tests.support.schema_comparison import Schema, laxer, unknown_to_us
from tests.support.upstream_schemas import definitions, nats_spec

KINDS = {one.name: one for one in (mpi.definition(), paddle.definition(), persia.definition(), *volcano.definitions())}
NOT_UPSTREAMS = {
    r"persiajobs.*/(apiVersion|kind|metadata)": "the API server has them in every kind, whether named or not",
    r"persiajobs.*/.*\.(ephemeral|image|clusterTrustBundle|podCertificate|fileKeyRef|claims|recursiveReadOnly)": (
        "`check` refuses it for PERSIA's operator; native jobs have it"
    ),
}
"""Ours only, by kind and path, with the reason."""
NOT_MODELLED = {
    r".*/status": "the operator writes it, nobody else",
    r".*/spec\..*template": "the API server checks pods when the operator makes them",
    r"podgroups.*/spec\.subGroupPolicy\[\]": "no component of ours writes it",
    r"(jobflows|cronjobs|hypernodes|numatopologies|nodeshards|colocationconfigurations)\..*/spec": (
        "Volcano's own parts, which no component of ours writes"
    ),
}
"""Taken and kept as it is, by kind and path, with the reason."""
REFUSED_BY_CHECK = {
    "workloadRef": "an alpha key of Kubernetes 1.35, which 1.36 no longer has",
    "readOnly": "of ephemeral volumes, which today's Kubernetes no longer has",
}
"""Keys of upstream's pod templates that no manifest may have, with the reason; all others are kept."""
NEWER = {to_camel(key) for keys in NEWER_THAN_OPERATOR.values() for key in keys}


@pytest.fixture(scope="module")
def modules() -> Iterator[Path]:
    """Where Go keeps what it downloads; gone after the module."""
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder)


@pytest.fixture(scope="module")
def upstream(modules: Path) -> dict[str, Schema]:
    return definitions(modules, ensure_persia(lambda line: print(line, file=sys.stderr, flush=True)))


def schemas(name: str, upstream: dict[str, Schema]) -> tuple[Schema, Schema]:
    """Ours and theirs."""
    theirs = next(one for one in upstream[name]["versions"] if one["name"] == KINDS[name].version)
    ours = KINDS[name].body()["versions"][0]
    return ours["schema"]["openAPIV3Schema"], theirs["schema"]["openAPIV3Schema"]


def listed(name: str, path: str, table: dict[str, str]) -> bool:
    return any(re.fullmatch(pattern, f"{name}/{path}") for pattern in table)


def test_every_kind_of_theirs_is_ours(upstream: dict[str, Schema]) -> None:
    assert upstream.keys() == KINDS.keys()


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_names_scope_and_status_are_theirs(kind: Definition, upstream: dict[str, Schema]) -> None:
    ours, theirs = kind.body(), upstream[kind.name]
    version = next(one for one in theirs["versions"] if one["name"] == kind.version)

    assert (ours["group"], ours["scope"]) == (theirs["group"], theirs["scope"])
    for key in ("kind", "plural", "singular", "shortNames"):
        assert ours["names"].get(key, []) == theirs["names"].get(key, []), key
    assert ours["versions"][0].get("subresources", {}) == (version.get("subresources") or {})


@pytest.mark.parametrize("name", KINDS)
def test_no_field_takes_what_theirs_refuses(name: str, upstream: dict[str, Schema]) -> None:
    tables = {"is not upstream's": NOT_UPSTREAMS, "is open, upstream has a schema": NOT_MODELLED}

    found = [
        f"{path}: {said}"
        for path, said in laxer(*schemas(name, upstream))
        if not listed(name, path, tables.get(said, {}))
    ]

    assert found == []


@pytest.mark.parametrize("name", KINDS)
def test_nothing_of_theirs_is_lost(name: str, upstream: dict[str, Schema]) -> None:
    assert [path for path, what in unknown_to_us(*schemas(name, upstream)) if what == "pruned"] == []


def templates(upstream: dict[str, Schema], name: str) -> Schema:
    """The pod template of an upstream kind."""
    spec = schemas(name, upstream)[1]["properties"]["spec"]["properties"]
    roles = spec["mpiReplicaSpecs"]["additionalProperties"] if "mpiReplicaSpecs" in spec else spec["worker"]
    return roles["properties"]["template"]


def test_check_takes_every_key_of_upstream_templates_but_those_with_a_reason(upstream: dict[str, Schema]) -> None:
    ours = schema_of(PodTemplate)
    unknown = [
        path
        for name in ("mpijobs.kubeflow.org", "paddlejobs.batch.paddlepaddle.org")
        for path, _ in unknown_to_us(ours, templates(upstream, name))
    ]

    assert {path.rpartition(".")[2] for path in unknown} == REFUSED_BY_CHECK.keys()


def test_every_exception_is_one(upstream: dict[str, Schema]) -> None:
    differences = [(f"{name}/{path}", said) for name in KINDS for path, said in laxer(*schemas(name, upstream))]

    for table in (NOT_UPSTREAMS, NOT_MODELLED):
        unused = [one for one in table if not any(re.fullmatch(one, place) for place, _ in differences)]
        assert unused == []


def test_paddle_jobs_are_refused_exactly_what_its_operator_is_too_old_for(upstream: dict[str, Schema]) -> None:
    found = laxer(schema_of(PodTemplate), templates(upstream, "paddlejobs.batch.paddlepaddle.org"))
    ours_only = {path for path, said in found if said == "is not upstream's" and "metadata." not in path}

    assert {path.rpartition(".")[2] for path in ours_only} == NEWER


def test_the_nats_operator_knows_every_field_of_ours(modules: Path) -> None:
    theirs = nats_spec(modules)
    made = Objects(nats_objects(NatsSpec(mode="operator"), "bus", "default")).body("NatsCluster", "bus")["spec"]

    assert list(laxer(schema_of(NatsSpec), theirs)) == []
    assert made.keys() <= theirs["properties"].keys()


def test_what_else_the_nats_operator_knows_is_refused_rather_than_lost(modules: Path) -> None:
    further = [path for path, _ in unknown_to_us(schema_of(NatsSpec), nats_spec(modules))]

    assert "gatewayConfig" in further
    for path in further:
        inner: object = None
        for key in reversed(path.split(".")):
            inner = {key: inner}
        with pytest.raises(ValidationError, match=re.escape(path.rpartition(".")[2])):
            NatsSpec.model_validate(inner)
