"""The table of jobs that `persia-infra status` shows."""

import json
import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext

import typer
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from persia_infra.jobs.status import JobStatus
from persia_infra.jobs.status import as_json as to_json

WIDTH = 100
_EVERY_SECONDS = 2
_COLOURS = {"Running": "green", "Succeeded": "green", "Suspended": "yellow", "Pending": "yellow"}


def watch(look: Callable[[], Sequence[JobStatus]], console: Console, *, as_json: bool) -> None:
    """Shows the table again and again, until Ctrl-C: in place on a terminal, one below the other elsewhere."""
    in_place = console.is_terminal and not as_json
    try:
        with Live(console=console, auto_refresh=False) if in_place else nullcontext() as live:
            while True:
                jobs = look()
                if live:
                    live.update(shown(jobs), refresh=True)
                elif as_json:
                    typer.echo(json.dumps(to_json(jobs)))
                else:
                    console.print(shown(jobs))
                time.sleep(_EVERY_SECONDS)
    except KeyboardInterrupt:
        return


def shown(jobs: Sequence[JobStatus]) -> RenderableType:
    """Returns a table that fits 100 columns, the reasons of what is wrong, and the commands that show logs."""
    if not jobs:
        return Text("the stack has no jobs")
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("job", "kind", "phase", "age", "role"):
        table.add_column(name, overflow="fold")
    for name in ("wanted", "ready", "pending", "failed"):
        table.add_column(name, justify="right", no_wrap=True)
    reasons, logs = [], []
    for job in jobs:
        first = [job.name, job.kind, Text(job.phase, style=_COLOURS.get(job.phase, "red")), _age(job.age_seconds)]
        for role in job.roles:
            numbers = (str(number) for number in (role.wanted, role.ready, role.pending, role.failed))
            table.add_row(*first, role.role, *numbers)
            first = ["", "", "", ""]
            if role.reason:
                reasons.append(Text(f"{job.name} {role.role}: {role.reason}"))
        if job.phase != "Missing":
            logs.append(Text(job.log, overflow="ignore", no_wrap=True))
    parts: list[RenderableType] = [table]
    if reasons:
        parts += [Text(), *reasons]
    if logs:
        parts += [Text(), Text("logs", style="bold"), *logs]
    return Group(*parts)


def _age(seconds: int | None) -> str:
    if seconds is None:
        return "-"
    for unit, length in (("d", 86400), ("h", 3600), ("m", 60)):
        if seconds >= length:
            return f"{seconds // length}{unit}"
    return f"{seconds}s"
