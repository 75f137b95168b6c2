"""When GKE may upgrade a cluster and when it may not."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Annotated, Literal, Self

from pydantic import Field, field_validator, model_validator

from persia_infra.spec.base import Finding, Spec, matching, refuse

_FIRST_DAY = datetime(2024, 1, 1, tzinfo=UTC)
_LEAST_HOURS_IN_FOUR_WEEKS = 48
_LONGEST_FREEZE = timedelta(days=90)
_MOST_FREEZES = 3

Day = Literal["MO", "TU", "WE", "TH", "FR", "SA", "SU"]


class Exclusion(Spec):
    """A period without upgrades, such as a launch or a long training run."""

    name: str
    """A name for the period, unique within the cluster."""
    start: datetime
    """When the period begins (ISO 8601); UTC unless it has an offset."""
    end: datetime
    """When the period ends (ISO 8601); UTC unless it has an offset."""
    scope: Literal["NO_UPGRADES", "NO_MINOR_UPGRADES", "NO_MINOR_OR_NODE_UPGRADES"] = "NO_MINOR_OR_NODE_UPGRADES"
    """Which upgrades are held back; by default minor versions and all upgrades of nodes."""

    @field_validator("start", "end")
    @classmethod
    def _in_utc(cls, moment: datetime) -> datetime:
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        refuse(self._findings())
        return self

    def _findings(self) -> Iterator[Finding]:
        if self.end <= self.start:
            yield ("end",), "is not after start, so no upgrade would be held back; swap them"
        if self.scope == "NO_UPGRADES" and self.end - self.start > _LONGEST_FREEZE:
            yield (
                ("end",),
                f"is more than {_LONGEST_FREEZE.days} days after start, longer than GKE lets a cluster go without any "
                "upgrade; shorten the period, or write scope: NO_MINOR_OR_NODE_UPGRADES",
            )


class Maintenance(Spec):
    """The weekly windows in which upgrades may begin, in UTC."""

    start: Annotated[str, matching(r"([01]\d|2[0-3]):[0-5]\d", 'time of day; write one such as "02:00"')] = "02:00"
    """The time of day at which a window begins, in UTC; 02:00 by default."""
    hours: int = Field(default=6, ge=4, le=24)
    """The length of a window in hours, 4 to 24; 6 by default."""
    days: list[Day] = Field(default=["SA", "SU"], min_length=1)
    """The days on which a window begins; Saturday and Sunday by default."""
    exclusions: list[Exclusion] = Field(default=[])
    """Periods without upgrades; none by default."""

    @property
    def window(self) -> tuple[str, str]:
        """The start and end of the first window, as GKE writes times."""
        hour, minute = map(int, self.start.split(":"))
        start = _FIRST_DAY + timedelta(hours=hour, minutes=minute)
        return format_utc(start), format_utc(start + timedelta(hours=self.hours))

    @property
    def recurrence(self) -> str:
        """The rule (RFC 5545) by which the window repeats."""
        return f"FREQ=WEEKLY;BYDAY={','.join(self.days)}"

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        refuse(self._findings())
        return self

    def _findings(self) -> Iterator[Finding]:
        in_four_weeks = self.hours * len(set(self.days)) * 4
        if in_four_weeks < _LEAST_HOURS_IN_FOUR_WEEKS:
            yield (
                ("hours",),
                f"leaves {in_four_weeks} hours for upgrades in four weeks, but GKE requires "
                f"{_LEAST_HOURS_IN_FOUR_WEEKS}; add hours or days",
            )
        names = [exclusion.name for exclusion in self.exclusions]
        for index, name in enumerate(names):
            if name in names[:index]:
                yield (
                    ("exclusions", index, "name"),
                    f"{name!r} is used twice, so one exclusion would replace the other; rename one of them",
                )
        freezes = [index for index, exclusion in enumerate(self.exclusions) if exclusion.scope == "NO_UPGRADES"]
        for index in freezes[_MOST_FREEZES:]:
            yield (
                ("exclusions", index, "scope"),
                f"GKE accepts at most {_MOST_FREEZES} exclusions with NO_UPGRADES; remove one",
            )


def format_utc(moment: datetime) -> str:
    """Returns a moment in UTC as GKE writes it."""
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")
