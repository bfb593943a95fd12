"""The table of ``quorate gangs``. In: gangs as ``gang_data`` makes them. Out: rows; wide says more.

A row never wraps: the sentence that says why is in ``wide`` and in ``quorate why``.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable
from typing import Any

from rich.text import Text

from quorate.cli.show import output
from quorate.cli.show.survey_result import STYLES, age

_COLUMNS = ("GANG", "STATE", "MEMBERS", "MIN", "GPUS", "PLACE", "AGE", "REASON")
_WIDE_COLUMNS = ("API", "RUNNING", "PRIORITY", "SCHEDULER", "OWNER", "WHY")
_NO_NEWS = ("AGE", "PLACE")
"""Columns that change though nothing happens to the gang itself."""


class GangTable:
    """A table of gangs that grows: its header is printed once, and a row only when it is news."""

    def __init__(self, *, with_namespaces: bool, wide: bool) -> None:
        """Prepare a table; ``with_namespaces`` adds theirs, as where all are looked at."""
        self._columns = (
            *(("NAMESPACE",) if with_namespaces else ()),
            *_COLUMNS,
            *(_WIDE_COLUMNS if wide else ()),
        )
        self._table = output.Table(self._columns)
        self._printed: dict[tuple[str, ...], tuple[str, ...]] = {}

    def show(self, objects: Iterable[dict[str, Any]], now_s: float) -> None:
        """Print the rows that differ in more than age and place from what was printed before."""
        rows = []
        for one in objects:
            cells = _cells(one, now_s)
            key = one["metadata"]["namespace"], one["metadata"]["name"], one["api"]
            said = tuple(cells[name] for name in self._columns if name not in _NO_NEWS)
            if self._printed.get(key) != said:
                self._printed[key] = said
                rows.append([self._text(name, cells) for name in self._columns])
        self._table.show(rows)

    def _text(self, column: str, cells: dict[str, str]) -> Text:
        return Text(cells[column], style=STYLES[cells["STATE"]] if column == "STATE" else "")


def _cells(one: dict[str, Any], now_s: float) -> dict[str, str]:
    members, owner, line = one["members"], one["owner"], one["line"]
    return {
        "NAMESPACE": one["metadata"]["namespace"],
        "GANG": one["metadata"]["name"],
        "API": one["api"],
        "STATE": one["state"],
        "MEMBERS": f"{members['bound'] + members['past']}/{members['total']}",
        "MIN": "?" if members["min"] is None else str(members["min"]),
        "GPUS": str(one["gpus"] or "-"),
        "PLACE": f"{line['place']}/{line['length']}" if line else "-",
        "AGE": _age(one["metadata"]["creationTimestamp"], now_s),
        "REASON": one["reason"] or "-",
        "RUNNING": str(members["running"]),
        "PRIORITY": str(one["priority"]),
        "SCHEDULER": one["schedulerName"] or "-",
        "OWNER": f"{owner['kind']}/{owner['name']}" if owner else "-",
        "WHY": one["message"],
    }


def _age(created: str | None, now_s: float) -> str:
    if created is None:
        return "?"
    return age(now_s - datetime.datetime.fromisoformat(created).timestamp())
