"""Volcano queues."""

from collections.abc import Mapping
from typing import Any, ClassVar

from pydantic import Field, model_validator

from persia_infra.spec.base import Quantity, Spec, refuse


class QueueSpec(Spec):
    """A Volcano queue, in which gangs wait for a share of the cluster."""

    WITHOUT_EFFECT: ClassVar[dict[str, str]] = {
        "parent": "Volcano supports either weights or a tree of queues, and weights are used here",
        "reclaimable": "Volcano does not reclaim resources from a running gang, because that would end the whole gang",
    }

    weight: int = Field(default=1, ge=1, le=65535)
    """The queue's share of the cluster relative to the other queues; 1 by default."""
    capability: dict[str, Quantity] = Field(default={})
    """The most that the queue's jobs may use together, by resource; no limit when absent."""
    priority: int | None = Field(default=None, ge=0)
    """The queue's priority; jobs of queues with a higher one are scheduled first."""

    @model_validator(mode="before")
    @classmethod
    def _refuse_what_has_no_effect(cls, data: Any) -> Any:  # noqa: ANN401
        if isinstance(data, Mapping):
            refuse(
                ((key,), f"has no effect: {why}; remove it") for key, why in cls.WITHOUT_EFFECT.items() if key in data
            )
        return data
