"""`persia-infra status`."""

import json
import time
from contextlib import nullcontext
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from persia_infra.status import JobStatus

WIDTH = 100
_EVERY_SECONDS = 2
_COLOURS = {"Running": "green", "Succeeded": "green", "Suspended": "yellow", "Pending": "yellow"}


def status(
    stack: Annotated[str, typer.Argument(help="The stack's name, as in stacks/Pulumi.<name>.yaml.")],
    kubeconfig: Annotated[
        Path | None,
        typer.Option(help="Of the cluster, or of a rehearsal that was kept; KUBECONFIG when absent.", dir_okay=False),
    ] = None,
    watch: Annotated[bool, typer.Option("--watch", help="Look again every two seconds, until Ctrl-C.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object; with --watch one a line.")] = False,
) -> None:
    """Shows how each job is doing: its roles with what they want, have and lack.

    Exit 0 if every job runs, has succeeded or is suspended, or watching was ended by Ctrl-C; 1 if not; 2 if the
    input is wrong.
    """
    from persia_infra.errors import InputError, Problem
    from persia_infra.rehearsal.provider.cluster import connect
    from persia_infra.rehearsal.provider.package import ProviderError
    from persia_infra.stack import find_project, find_stack, load_stack, shown_path
    from persia_infra.status import FINE, job_statuses
    from persia_infra.status import as_json as to_json

    project = find_project(Path.cwd())
    file = find_stack(stack, project)
    environment = load_stack(file, shown=shown_path(file, project))
    try:
        api = connect(str(kubeconfig) if kubeconfig else None, None)
    except ProviderError as error:
        raise InputError([Problem("--kubeconfig", "", str(error))]) from None
    if api is None:
        said = "no kubeconfig names a cluster; give --kubeconfig, or set KUBECONFIG"
        raise InputError([Problem("--kubeconfig", "", said)])

    def look() -> "list[JobStatus]":
        return job_statuses(environment, api, datetime.now(UTC))

    console = Console()
    console.width = min(console.width, WIDTH) if console.is_terminal else WIDTH
    try:
        if watch:
            _watch(look, console, as_json=as_json)
            return
        jobs = look()
    except ProviderError as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(1) from None
    typer.echo(json.dumps(to_json(jobs), indent=2)) if as_json else console.print(shown(jobs))
    raise typer.Exit(0 if all(job.phase in FINE for job in jobs) else 1)


def _watch(look: "Callable[[], Sequence[JobStatus]]", console: Console, *, as_json: bool) -> None:
    """Shows it again and again: in place on a terminal, below each other elsewhere."""
    from persia_infra.status import as_json as to_json

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


def shown(jobs: "Sequence[JobStatus]") -> RenderableType:
    """A table that fits 100 columns, then what is wrong, then how to read the logs."""
    if not jobs:
        return Text("the stack describes no job")
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
