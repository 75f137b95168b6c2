"""The base class of all specs, and the field types that they share.

Both spellings of a key are accepted everywhere: Kubernetes' own (`volumeMounts`) and Python's
(`volume_mounts`). A spec never holds values that are known only at deploy time.
"""

import ipaddress
import re
from collections.abc import Iterable
from typing import Annotated, Any, Self

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, WithJsonSchema
from pydantic.alias_generators import to_camel
from pydantic_core import PydanticCustomError

from persia_infra.spec.quantity import check_quantity

Place = tuple[str | int, ...]
"""The keys that lead from the top of a spec to a value."""

Finding = tuple[Place, str]
"""A place and a message about the value there."""

MOST_PODS = 200_000
"""GKE's limit of pods per cluster."""
_IMAGE = (
    r"([A-Za-z0-9.-]+(:[0-9]+)?/)?[a-z0-9]+([._/-]+[a-z0-9]+)*(:[A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?"
    r"(@sha256:[0-9a-f]{64})?"
)


class Spec(BaseModel):
    """A frozen model that refuses unknown keys."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        alias_generator=to_camel,
        populate_by_name=True,
        hide_input_in_errors=True,
        defer_build=True,
    )

    @classmethod
    def defaults(cls) -> Self:
        """Returns an instance of defaults alone.

        Unlike the constructor it does not build the model's validator, which takes milliseconds while importing.
        """
        return cls.model_construct()


def refuse(findings: Iterable[Finding]) -> None:
    """Fails the running validation if there are findings, with all of them at once, each at its own place.

    A plain ValueError would carry only one message, for the whole model.
    """
    findings = list(findings)
    if findings:
        summary = "; ".join(f"{'.'.join(map(str, place))}: {message}" for place, message in findings)
        raise PydanticCustomError("refused", "{summary}", {"summary": summary, "findings": findings})


def _quantity(value: Any) -> Any:  # noqa: ANN401
    if isinstance(value, bool):
        raise ValueError('is not a quantity; write a number with an optional unit, such as "500m" or "16Gi"')
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
            f"{value!r} is not a valid name: "
            "use lower-case letters, digits and '-' (at most 63), starting with a letter"
        )
    return value


def _cidr(value: str) -> str:
    try:
        network = ipaddress.IPv4Network(value)
    except ValueError:
        raise ValueError(
            "is not an IPv4 range; write the network address and its prefix, such as 10.0.0.0/20"
        ) from None
    return str(network)


def matching(pattern: str, expected: str) -> AfterValidator:
    """Accepts only text that matches the whole pattern.

    Args:
        pattern: A regular expression.
        expected: Completes "is not a valid …": what the text should be and how to write it.
    """

    def check(value: str) -> str:
        if not re.fullmatch(pattern, value):
            raise ValueError(f"is not a valid {expected}")
        return value

    return AfterValidator(check)


Quantity = Annotated[str, BeforeValidator(_quantity), WithJsonSchema({"type": "string", "format": "quantity"})]
"""A Kubernetes quantity; numbers without quotes are accepted too."""

PodCount = Annotated[int, BeforeValidator(_pod_count)]
"""A number of pods that one cluster can run."""
Image = Annotated[str, matching(_IMAGE, "image name; write one such as registry.example/team/trainer:1.2")]
DnsLabel = Annotated[str, AfterValidator(_dns_label)]
Cidr = Annotated[str, AfterValidator(_cidr)]
