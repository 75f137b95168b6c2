"""Markdown tables, and the middle of several measurements."""

from collections.abc import Callable, Sequence
from statistics import median


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def alternately(rounds: int, *measurements: Callable[[], float]) -> list[float]:
    """The median of each, taken in turns, so that a busy moment of the machine meets all of them."""
    taken: list[list[float]] = [[] for _ in measurements]
    for _ in range(rounds):
        for index, measure in enumerate(measurements):
            taken[index].append(measure())
    return [median(values) for values in taken]
