"""When GKE may upgrade a cluster, and when not."""

from datetime import UTC, datetime, timedelta
from typing import Annotated, Literal, Self

from pydantic import Field, field_validator, model_validator

from persia_infra.spec.base import Spec, matching, refuse

_FROM = datetime(2024, 1, 1, tzinfo=UTC)
_LEAST_HOURS_IN_FOUR_WEEKS = 48
_LONGEST_FREEZE = timedelta(days=90)
_MOST_FREEZES = 3

Day = Literal["MO", "TU", "WE", "TH", "FR", "SA", "SU"]


class Exclusion(Spec):
    """A time without upgrades: a launch, a long training run."""

    name: str
    start: datetime
    end: datetime
    scope: Literal["NO_UPGRADES", "NO_MINOR_UPGRADES", "NO_MINOR_OR_NODE_UPGRADES"] = "NO_MINOR_OR_NODE_UPGRADES"

    @field_validator("start", "end")
    @classmethod
    def _in_utc(cls, moment: datetime) -> datetime:
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.end <= self.start:
            refuse([(("end",), "is not after start, so nothing would be excluded; swap them")])
        if self.scope == "NO_UPGRADES" and self.end - self.start > _LONGEST_FREEZE:
            refuse(
                [
                    (
                        ("end",),
                        f"is more than {_LONGEST_FREEZE.days} days after start, longer than GKE lets a cluster go "
                        "without any upgrade; shorten it, or write scope: NO_MINOR_OR_NODE_UPGRADES",
                    )
                ]
            )
        return self


class Maintenance(Spec):
    """The window in which upgrades may begin, in UTC."""

    start: Annotated[str, matching(r"([01]\d|2[0-3]):[0-5]\d", 'no time of day; write one such as "02:00"')] = "02:00"
    hours: int = Field(default=6, ge=4, le=24)
    days: list[Day] = Field(default=["SA", "SU"], min_length=1)
    exclusions: list[Exclusion] = Field(default=[])

    @property
    def window(self) -> tuple[str, str]:
        """The first window's start and end, as GKE writes times."""
        hour, minute = map(int, self.start.split(":"))
        start = _FROM + timedelta(hours=hour, minutes=minute)
        return written_time(start), written_time(start + timedelta(hours=self.hours))

    @property
    def recurrence(self) -> str:
        """The rule by which the window comes again."""
        return f"FREQ=WEEKLY;BYDAY={','.join(self.days)}"

    @model_validator(mode="after")
    def _long_enough(self) -> Self:
        in_four_weeks = self.hours * len(set(self.days)) * 4
        findings = []
        if in_four_weeks < _LEAST_HOURS_IN_FOUR_WEEKS:
            findings.append(
                (
                    ("hours",),
                    f"leaves {in_four_weeks} hours in four weeks, and GKE insists on {_LEAST_HOURS_IN_FOUR_WEEKS}; "
                    "add hours or days",
                )
            )
        names = [one.name for one in self.exclusions]
        findings += [
            (("exclusions", index, "name"), f"{name!r} is given twice, so one would replace the other; rename one")
            for index, name in enumerate(names)
            if name in names[:index]
        ]
        freezes = [index for index, one in enumerate(self.exclusions) if one.scope == "NO_UPGRADES"]
        findings += [
            (("exclusions", index, "scope"), f"GKE takes {_MOST_FREEZES} of NO_UPGRADES at most; remove one")
            for index in freezes[_MOST_FREEZES:]
        ]
        refuse(findings)
        return self


def written_time(moment: datetime) -> str:
    """A moment as GKE writes it."""
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")
