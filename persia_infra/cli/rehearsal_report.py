"""The report of a rehearsal as a terminal shows it."""

from collections import Counter
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table

if TYPE_CHECKING:
    from persia_infra.rehearsal.rehearse import Report

PENDING_SHOWN = 20


def print_report(report: "Report", console: Console, hint: str = "") -> None:
    """Prints the facts, then pending pods, then errors, then the hint."""
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
        memory = ", ".join(f"{name} {mebibytes} MiB" for name, mebibytes in report.operators.items())
        facts.add_row("operators", memory)
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
    """Returns counts by type, shortened to its last word unless two types share that word."""
    last = {name: name.rsplit(":", 1)[-1] for name in counts}
    shared = Counter(last.values())
    shown = {name: word if shared[word] == 1 else name for name, word in last.items()}
    return ", ".join(f"{count} {shown[name]}" for name, count in counts.items()) or "none"
