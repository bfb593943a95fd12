"""Pictures of clusters as text: each node with a cell for each GPU, and each gang with its state.

In: pictures with their titles. Out: what rich can print, in one column or side by side. Letters say
whose a cell is, colours only repeat it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.console import Group, RenderableType
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from tools.demo.world import GANGS, Gang, GangSeen, Member, Picture

Titled = tuple[str, Picture]
_LABEL = "waiting"


def view(pictures: Sequence[Titled]) -> RenderableType:
    """Show one cluster with its gangs beside it, or two clusters side by side."""
    if len(pictures) == 1:
        title, picture = pictures[0]
        return Group(_title(title), _columns(_nodes(picture), _gangs(picture), shares=(0, 1)))
    parts = [
        Group(_title(title), _nodes(picture), "", _gangs(picture)) for title, picture in pictures
    ]
    return _columns(*parts, shares=(1, 1))


def summary(picture: Picture) -> str:
    """Say in one line how the gangs stand."""
    parts = [
        f"{name} {seen.running}/{seen.gang.needed} {_state(seen).plain}"
        for name, seen in picture.gangs.items()
    ]
    return ", ".join(parts) or "there are no pods"


def _title(title: str) -> Rule:
    return Rule(Text(title, style="bold"), align="left", style="dim")


def _columns(*parts: RenderableType, shares: Iterable[int]) -> Table:
    grid = Table.grid(padding=(0, 3, 0, 0), expand=True)
    for share in shares:
        grid.add_column(ratio=share or None)
    grid.add_row(*parts)
    return grid


def _nodes(picture: Picture) -> RenderableType:
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_row(*(Text(title, style="dim") for title in ("node", "GPUs", "other pods")))
    for name, gpus in sorted(picture.nodes.items()):
        here = [(gang, one) for gang, one in _members(picture) if one.node == name]
        grid.add_row(name, _gpu_cells(here, gpus), _letters(here, with_gpus=False))
    waiting = [(gang, one) for gang, one in _members(picture) if not one.node]
    line = Text(f"{_LABEL}  ", style="dim" if not waiting else "")
    return Group(grid, line.append_text(_letters(waiting) if waiting else Text("-")))


def _members(picture: Picture) -> list[tuple[Gang, Member]]:
    """List the pods that need a node or hold one, in an order that stays the same."""
    found = [(seen.gang, one) for seen in picture.gangs.values() for one in seen.members]
    alive = [(gang, one) for gang, one in found if one.phase in ("Pending", "Running")]
    return sorted(alive, key=lambda pair: (GANGS.index(pair[0]), pair[1].name))


def _gpu_cells(here: list[tuple[Gang, Member]], gpus: int) -> Text:
    text = Text()
    for gang, one in here:
        for _ in range(one.gpus):
            text.append(f"{gang.letter} ", style=f"bold white on {gang.style}")
    free = gpus - sum(one.gpus for _, one in here)
    return text.append("· " * free, style="dim")


def _letters(members: list[tuple[Gang, Member]], *, with_gpus: bool = True) -> Text:
    text = Text()
    for gang, one in members:
        if with_gpus or not one.gpus:
            text.append(gang.letter, style=f"bold {gang.style}")
    return text


def _gangs(picture: Picture) -> Table:
    grid = Table.grid(padding=(0, 2, 0, 0), expand=True)
    for share in (None, None, 1):
        grid.add_column(ratio=share)
    grid.add_row(*(Text(title, style="dim") for title in ("gang", "running", "state")))
    for name, seen in picture.gangs.items():
        style = f"bold {seen.gang.style}"
        count = "" if seen.is_done else f"{seen.running} of {seen.gang.needed}"
        grid.add_row(Text(name, style=style), count, _state(seen))
    return grid


def _state(seen: GangSeen) -> Text:
    if seen.is_done:
        return Text(f"done: {len(seen.members)} have ended", style="dim")
    if seen.is_whole:
        return Text("runs", style="green")
    if seen.placed:
        return Text(f"half started{f': {seen.why}' if seen.why else ''}", style="bold yellow")
    return Text(f"waits{f': {seen.why}' if seen.why else ''}", style="yellow")
