"""The base of every description, and the field types they share.

Both spellings of a key are accepted everywhere: Kubernetes' own (`volumeMounts`) and Python's
(`volume_mounts`). Values that are known only at deploy time never appear in a description.
"""

import ipaddress
import re
from collections.abc import Iterable
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, WithJsonSchema
from pydantic.alias_generators import to_camel
from pydantic_core import PydanticCustomError

from persia_infra.spec.quantity import check_quantity

Place = tuple[str | int, ...]
"""The keys that lead from a description to the value that a finding is about."""

Finding = tuple[Place, str]

MOST_PODS = 200_000
"""GKE's limit for a cluster."""
_IMAGE = (
    r"([A-Za-z0-9.-]+(:[0-9]+)?/)?[a-z0-9]+([._/-]+[a-z0-9]+)*(:[A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?"
    r"(@sha256:[0-9a-f]{64})?"
)


class Spec(BaseModel):
    """A frozen description that refuses keys it does not know."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        alias_generator=to_camel,
        populate_by_name=True,
        hide_input_in_errors=True,
        defer_build=True,
    )


def refuse(findings: Iterable[Finding]) -> None:
    """Fails the validation that calls it with all findings at once, each at its own place.

    A plain ValueError can carry one message for the whole model only.
    """
    found = list(findings)
    if found:
        summary = "; ".join(f"{'.'.join(map(str, place))}: {message}" for place, message in found)
        raise PydanticCustomError("refused", "{summary}", {"summary": summary, "findings": found})


def _quantity(value: Any) -> Any:  # noqa: ANN401
    if isinstance(value, bool):
        raise ValueError('not a quantity; write a number with an optional unit, such as "500m" or "16Gi"')
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, int | float):
        value = str(value)
    if isinstance(value, str):
        check_quantity(value)
    return value


def _pod_count(value: Any) -> Any:  # noqa: ANN401
    if isinstance(value, bool):
        raise ValueError("must be a whole number")
    if isinstance(value, int) and value > MOST_PODS:
        raise ValueError(f"is more than the {MOST_PODS} pods that one GKE cluster can run; lower it")
    return value


def _dns_label(value: str) -> str:
    if len(value) > 63 or not re.fullmatch(r"[a-z]([-a-z0-9]*[a-z0-9])?", value):
        raise ValueError(
            f"{value!r} is no DNS label, so Kubernetes would refuse objects named after it; "
            "use at most 63 lower-case letters, digits and '-', starting with a letter"
        )
    return value


def _cidr(value: str) -> str:
    try:
        network = ipaddress.IPv4Network(value)
    except ValueError:
        raise ValueError("not an IPv4 range; write the network address and its prefix, such as 10.0.0.0/20") from None
    return str(network)


def matching(pattern: str, otherwise: str) -> AfterValidator:
    """A text of a given form; `otherwise` completes "is …" with what it is not, and how to write it."""

    def check(value: str) -> str:
        if not re.fullmatch(pattern, value):
            raise ValueError(f"is {otherwise}")
        return value

    return AfterValidator(check)


Quantity = Annotated[str, BeforeValidator(_quantity), WithJsonSchema({"type": "string", "format": "quantity"})]
"""A Kubernetes quantity; unquoted YAML numbers are taken too."""

PodCount = Annotated[int, BeforeValidator(_pod_count)]
Image = Annotated[str, matching(_IMAGE, "no name of an image; write one such as registry.example/team/trainer:1.2")]
DnsLabel = Annotated[str, AfterValidator(_dns_label)]
Cidr = Annotated[str, AfterValidator(_cidr)]
