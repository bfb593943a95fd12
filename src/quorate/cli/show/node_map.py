"""The map of ``quorate nodes``: a row for each node with a cell for each GPU, as in the demo.

In: what ``node_usage`` found. Out: sums, a table, and a line for each letter of the map. Letters
say who has a GPU: the gang with the most is A. A dot is free; an x is free, and on a node that
takes no pods. What stands before a slash is free.
"""

from __future__ import annotations

import string
from collections import Counter
from collections.abc import Sequence

from rich.text import Text

from quorate.cli.show import output
from quorate.cli.show.node_usage import CORDONED, NOT_READY, READY, Amount, NodeUsage, Totals
from quorate.core.model.life_cycle import NodeLife
from quorate.core.words.counting import counted

_COLUMNS = ("NODE", "STATE", "GPUS", "FREE", "CPU", "MEMORY", "PODS")
_LIFE_COLUMNS = ("LIFE-CYCLE", "RESERVED")
"""They are there if a node has a life-cycle."""
_WIDE_COLUMNS = ("ZONE", "TAINTS")
_LETTERS = string.ascii_uppercase + string.ascii_lowercase
_OTHER, _FREE, _UNREACHABLE, _MORE = "#", "·", "x", "…"
_CELLS_MAX = 16
"""A node with more GPUs has no map of them: only numbers."""
_STYLES = {READY: "green", CORDONED: "yellow", NOT_READY: "red"}
_COLOURS = ("cyan", "magenta", "blue", "green", "yellow", "red")
_ZONE = "topology.kubernetes.io/zone"
_GIB = 2**30


def print_map(found: Sequence[NodeUsage], *, wide: bool) -> None:
    """Print the sums, the nodes, and whose letters are on them."""
    held: Counter[str] = sum((one.holders for one in found), Counter())
    letters = dict(zip((name for name, _ in held.most_common()), _LETTERS, strict=False))
    output.print_lines([Text(line) for line in _sums(Totals.of(found))])
    lives = any(one.life != NodeLife() for one in found)
    columns = _COLUMNS + (_LIFE_COLUMNS if lives else ()) + (_WIDE_COLUMNS if wide else ())
    output.Table(columns).show(
        [[cells[name] for name in columns] for cells in (_cells(one, letters) for one in found)]
    )
    if held:
        output.print_lines([Text(""), *_legend(held, letters, found)])


def _sums(totals: Totals) -> list[str]:
    lines = [f"Nodes: {totals.nodes}, of which {_counted(totals.states)}"]
    if totals.gpus:
        nodes = ", ".join(f"{nodes} x {size}" for size, nodes in sorted(totals.sizes.items()))
        lost = f", {totals.unreachable} out of reach" if totals.unreachable else ""
        lines.append(
            f"GPUs:  {totals.gpus} ({nodes}): {totals.used} in use, {totals.free} free{lost}"
        )
        has = "node has all its" if totals.whole == 1 else "nodes have all their"
        lines.append(f"       {totals.whole} {has} GPUs free")
    return [*lines, ""]


def _counted(states: Counter[str]) -> str:
    return ", ".join(
        f"{states[state]} {state}" for state in _STYLES if states[state] or state == READY
    )


def _cells(one: NodeUsage, letters: dict[str, str]) -> dict[str, Text]:
    of = one.resources
    pods = of.get("pods", Amount(0, 0))
    zone = dict(one.node.labels).get(_ZONE, "-")
    taints = ",".join(sorted({taint.key for taint in one.node.taints})) or "-"
    return {
        "NODE": Text(one.name),
        "STATE": Text(one.state, style=_STYLES[one.state]),
        "GPUS": _gpu_cells(one, letters),
        "FREE": Text(f"{one.gpus.free}/{one.gpus.total}" if one.gpus.total else "-"),
        "CPU": Text(_share(of.get("cpu"), 1000, "")),
        "MEMORY": Text(_share(of.get("memory"), _GIB, "Gi")),
        "PODS": Text(str(pods.total - pods.free)),
        "LIFE-CYCLE": Text(_phase(one.life), style="yellow" if one.life.closed else ""),
        "RESERVED": Text(one.life.reserved or "-"),
        "ZONE": Text(zone),
        "TAINTS": Text(taints),
    }


def _phase(life: NodeLife) -> str:
    """Return the state, or what is about to become of a node in production."""
    return (not life.is_out_of_production and life.closed) or life.state or "-"


def _share(amount: Amount | None, unit: int, suffix: str) -> str:
    """Return what is free of all, in whole units; what is not a whole one is not counted."""
    if amount is None:
        return "-"
    return f"{amount.free // unit}/{amount.total // unit}{suffix}"


def _gpu_cells(one: NodeUsage, letters: dict[str, str]) -> Text:
    if not one.gpus.total:
        return Text("-")
    if one.gpus.total > _CELLS_MAX:
        return Text(_MORE)
    text, used = Text(), one.gpus.total - one.gpus.free
    cells = [
        letters.get(name, _OTHER) for name, gpus in one.holders.most_common() for _ in range(gpus)
    ]
    cells = (cells + [_OTHER] * used)[:used]  # what nobody is known to hold is in use all the same
    cells += [_FREE if one.takes_pods else _UNREACHABLE] * one.gpus.free
    for number, cell in enumerate(cells):
        text.append(" " if number else "").append(cell, style=_style(cell))
    return text


def _style(cell: str) -> str:
    if cell in (_FREE, _UNREACHABLE, _OTHER):
        return "dim"
    return f"bold {_COLOURS[_LETTERS.index(cell) % len(_COLOURS)]}"


def _legend(held: Counter[str], letters: dict[str, str], found: Sequence[NodeUsage]) -> list[Text]:
    nodes = Counter(name for one in found for name in one.holders)
    lines = []
    for name, letter in letters.items():
        where = f"{counted(held[name], 'GPU')} on {counted(nodes[name], 'node')}"
        lines.append(Text(letter, style=_style(letter)).append(f"  {name}: {where}", style=""))
    others = [name for name in held if name not in letters]
    if others:
        gpus = counted(sum(held[name] for name in others), "GPU")
        lines.append(Text(f"{_OTHER}  {len(others)} more: {gpus}"))
    return lines
