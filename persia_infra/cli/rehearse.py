"""`persia-infra rehearse`: the whole `pulumi up` without a cloud."""

import json
import os
import shlex
import time
from collections import Counter
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from persia_infra.operator_rules import needed_operators
from persia_infra.stack import describes_environment, find_project, find_stack, load_stack, shown_path

if TYPE_CHECKING:
    from persia_infra.environment import EnvironmentSpec
    from persia_infra.rehearsal.engine import Engine
    from persia_infra.rehearsal.rehearse import Rehearsal, Report

PENDING_SHOWN = 20


def rehearse(
    stack: Annotated[str, typer.Argument(metavar="STACK", help="The stack's name, as in stacks/Pulumi.<name>.yaml.")],
    project: Annotated[
        Path, typer.Option("--project", "-C", help="Folder of the Pulumi project.", file_okay=False)
    ] = Path(),
    keep: Annotated[
        bool, typer.Option("--keep", help="Leave everything running until Ctrl-C, with a kubeconfig to look at it.")
    ] = False,
    destroy: Annotated[
        bool, typer.Option("--destroy", help="Also run `pulumi destroy` and prove that it leaves nothing behind.")
    ] = False,
    operators: Annotated[
        bool,
        typer.Option(
            "--operators", help="Also run the operators that the stack deploys, so that its jobs come to life."
        ),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the report as JSON.")] = False,
) -> None:
    """Deploys a stack with the real Pulumi engine onto a real control plane on this machine.

    Google Cloud and the nodes are simulated; nothing is rented and no account is needed. Exit 0 if every pod
    runs and a second `up` changes nothing, 1 if not, 2 if the stack's description is wrong.
    """
    if keep and destroy:
        raise typer.BadParameter("--keep and --destroy exclude each other: after a destroy there is nothing to keep")
    project = find_project(project)
    file = find_stack(stack, project)
    hint = ""
    shown = shown_path(file, project)
    if describes_environment(file, shown=shown):
        environment = load_stack(file, shown=shown)
        hint = "" if operators else _hint(environment)

    from persia_infra.rehearsal.control_plane import PartFailed
    from persia_infra.rehearsal.engine import EngineFailed
    from persia_infra.rehearsal.rehearse import rehearse as run
    from persia_infra.rehearsal.toolchain import ToolMissing

    errors = Console(stderr=True)
    status = errors.status("starting") if errors.is_terminal else None

    def progress(line: str) -> None:
        if line.startswith(("building", "  ")):
            errors.print(line, highlight=False, markup=False, soft_wrap=True)
        elif status:
            status.update(escape(line))

    def show(report: "Report") -> None:
        if as_json:
            typer.echo(json.dumps(report.as_json(), indent=2))
        else:
            print_report(report, Console(), hint)

    def leave_running(rehearsal: "Rehearsal", engine: "Engine", report: "Report") -> None:
        if status:
            status.stop()
        show(report)
        errors.print(_how_to_look(rehearsal, engine), highlight=False, markup=False, soft_wrap=True)
        try:
            while True:
                rehearsal.control_plane.check_alive()
                time.sleep(1)
        except KeyboardInterrupt:
            errors.print("stopping")

    try:
        with status or nullcontext():
            kept = leave_running if keep else None
            report = run(project, stack, destroy=destroy, with_operators=operators, progress=progress, keep=kept)
    except (ToolMissing, PartFailed, EngineFailed) as error:
        errors.print(str(error), highlight=False, markup=False, soft_wrap=True)
        raise typer.Exit(1) from None
    if not keep:
        show(report)
    raise typer.Exit(0 if report.passed else 1)


def _how_to_look(rehearsal: "Rehearsal", engine: "Engine") -> str:
    """The variables go to a file that the user alone can read: the passphrase of the state is among them."""
    changed = {name: value for name, value in engine.environment.items() if os.environ.get(name) != value}
    file = rehearsal.control_plane.folder / "environment"
    file.touch(mode=0o600)
    file.write_text("".join(f"export {name}={shlex.quote(value)}\n" for name, value in sorted(changed.items())))
    return (
        "Everything is still running. In another terminal:\n"
        f"  . {file}\n"
        "  kubectl get pods -A\n"
        f"  cd {engine.project_folder} && pulumi preview\n"
        f"Logs: {rehearsal.control_plane.logs}\n"
        "Ctrl-C stops it and removes everything."
    )


def _hint(environment: "EnvironmentSpec") -> str:
    """What to do about jobs that are only objects, or wait for ever, while nobody runs their operators."""
    lifeless = [name for name, job in environment.jobs.items() if needed_operators(job)]
    return (
        f"only with their operators do these jobs come to life: {', '.join(lifeless)}; add --operators"
        if lifeless
        else ""
    )


def print_report(report: "Report", console: Console, hint: str = "") -> None:
    seconds = ", ".join(f"{phase} {value:.1f} s" for phase, value in report.seconds.items())
    facts = Table.grid(padding=(0, 2))
    facts.add_row("stack", report.stack)
    facts.add_row("engine", f"pulumi {report.engine}")
    facts.add_row("control plane", f"Kubernetes {report.kubernetes}")
    facts.add_row("providers", f"kubernetes {report.provider}; gcp simulated ({len(report.simulated)} types)")
    facts.add_row("resources", _counted(report.resources))
    facts.add_row("nodes", _counted(report.nodes))
    facts.add_row("pods", f"{report.pods.running} of {report.pods.wanted} running")
    if "second up" in report.seconds and not report.errors:
        facts.add_row("second up", f"{len(report.changed_by_second_up) or 'no'} changes")
    if "destroy" in report.seconds:
        facts.add_row("destroy", f"left {len(report.left_behind) or 'no'} objects behind")
    if report.operators:
        held = ", ".join(f"{name} {mebibytes} MiB" for name, mebibytes in report.operators.items())
        facts.add_row("operators", held)
    facts.add_row("time", seconds)
    facts.add_row("verdict", "[green]pass[/]" if report.passed else "[red]fail[/]")
    console.print(facts, highlight=False)
    for pod in report.pods.pending[:PENDING_SHOWN]:
        console.print(f"pending  {pod.pod}: {pod.reason}", highlight=False, markup=False)
    if (more := len(report.pods.pending) - PENDING_SHOWN) > 0:
        console.print(f"pending  and {more} more (--json lists them all)")
    for name, lines in (
        ("error", report.errors),
        ("changed by the second up", report.changed_by_second_up),
        ("left behind", report.left_behind),
    ):
        for line in lines:
            console.print(f"{name}: {line}", highlight=False, markup=False)
    if hint:
        console.print(f"hint: {hint}", highlight=False, markup=False, soft_wrap=True)


def _counted(counts: dict[str, int]) -> str:
    """Types by their last word, or in full where two end in the same one."""
    last = {name: name.rsplit(":", 1)[-1] for name in counts}
    shared = Counter(last.values())
    shown = {name: word if shared[word] == 1 else name for name, word in last.items()}
    return ", ".join(f"{count} {shown[name]}" for name, count in counts.items()) or "none"
