"""``quorate gangs``: list gangs, all or some, once or with every change.

Out: a table, names or data on standard output, and an exit code: 0 all is well, 1 not every name
was found, 2 the call, the cluster or the configuration is at fault.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any, NamedTuple

from quorate.cli.asking.mistakes import needs_a_person
from quorate.cli.asking.names import Name, NotAName, find, not_found
from quorate.cli.asking.selection import (
    SelectionError,
    in_order,
    is_selected,
    parse_selector,
    parse_sort,
    parse_states,
)
from quorate.cli.commands.look import Access, Wanted, look
from quorate.cli.show import output
from quorate.cli.show.gang_data import gang_object, list_of, typed_name
from quorate.cli.show.gang_table import GangTable
from quorate.cli.show.survey_result import SurveyResult
from quorate.core.model import GangKey
from quorate.core.model.selectors import Requirement
from quorate.core.scheduler import Scheduler


class Wishes(NamedTuple):
    """What the command line says."""

    names: Sequence[str]
    pods: bool
    selector: str
    states: Sequence[str]
    sort_by: str
    watch: bool
    form: str


class _Selection(NamedTuple):
    """Which gangs are wanted, and in which order."""

    names: list[Name]
    pods: bool
    requirements: tuple[Requirement, ...]
    states: frozenset[str]
    path: str

    @classmethod
    def of(cls, wishes: Wishes) -> _Selection:
        """Read what was typed. Raises NotAName, SelectionError."""
        return cls(
            [Name.parse(one) for one in wishes.names],
            wishes.pods,
            parse_selector(wishes.selector) if wishes.selector else (),
            parse_states(wishes.states),
            parse_sort(wishes.sort_by) if wishes.sort_by else "",
        )

    def choose(self, scheduler: Scheduler, where: str) -> list[GangKey]:
        """Return the gangs of those names, or all of one namespace."""
        cluster, gangs = scheduler.cluster, scheduler.cluster.gangs
        if self.names:
            chosen = [key for name in self.names for key in find(scheduler, where, name)]
            keys = list(dict.fromkeys(chosen))
        else:
            keys = [
                key
                for key, gang in gangs.items()
                if where in ("", key.namespace)
                and (gang.ours or not gang.members or needs_a_person(gang, cluster))
                and (self.pods or not key.is_single)
            ]
        return sorted(key for key in keys if is_selected(gangs[key], self.requirements))

    def objects(self, result: SurveyResult) -> list[dict[str, Any]]:
        """Return the gangs that were found and are in a state that is wanted, in order."""
        found = [gang_object(one, result) for one in result.found]
        wanted = [one for one in found if not self.states or one["state"] in self.states]
        return in_order(wanted, self.path)


def gangs(access: Access, wishes: Wishes) -> int:
    """Print the gangs of one namespace or of all; return the exit code."""
    if wishes.watch and wishes.form == "yaml":
        return output.error("--watch prints a table, wide, name or json: choose one with -o")
    try:
        selection = _Selection.of(wishes)
    except (NotAName, SelectionError) as error:
        return output.error(str(error))
    table = GangTable(with_namespaces=access.namespace == "", wide=wishes.form == "wide")
    stream = _Stream(wishes.form)

    def show(result: SurveyResult) -> int:
        try:
            objects = selection.objects(result)
        except SelectionError as error:
            return output.error(str(error))
        if wishes.watch and wishes.form in ("json", "name"):
            stream.show(objects)
        else:
            _print(objects, result, wishes, table)
        missing = not_found(result.scheduler, result.namespace, selection.names)
        for said in missing:
            output.error(f"{said} See: quorate gangs -A")
        return 1 if missing else 0

    def show_again(result: SurveyResult) -> None:
        with contextlib.suppress(SelectionError):  # no gang is left that has the field to sort by
            objects = selection.objects(result)
            if wishes.form in ("json", "name"):
                stream.show(objects)
            else:
                table.show(objects, result.now_s)

    wanted = Wanted(selection.choose, selection.names)
    return look(access, wanted, show, again=show_again if wishes.watch else None)


class _Stream:
    """Objects, or names, of gangs that have changed since they were printed."""

    def __init__(self, form: str) -> None:
        self._form = form
        self._printed: dict[str, dict[str, Any]] = {}

    def show(self, objects: list[dict[str, Any]]) -> None:
        """Print each gang that is new or differs from what was printed of it."""
        for one in objects:
            key = f"{one['api']} {one['metadata']['namespace']} {one['metadata']['name']}"
            news = {**one, "line": None}  # this changes with every gang before it
            if self._printed.get(key) == news:
                continue
            self._printed[key] = news
            if self._form == "json":
                output.print_data(one, "json")
            else:
                output.say(typed_name(one))


def _print(
    objects: list[dict[str, Any]], result: SurveyResult, wishes: Wishes, table: GangTable
) -> None:
    if wishes.form in ("json", "yaml"):
        output.print_data(list_of("Gang", objects), wishes.form)
    elif wishes.form == "name":
        for one in objects:
            output.say(typed_name(one))
    elif objects:
        table.show(objects, result.now_s)
    elif not wishes.names:
        where = f" in namespace {result.namespace}" if result.namespace else ""
        narrowed = bool(wishes.selector or wishes.states)
        more = "; -A looks in all" if result.namespace and not narrowed else ""
        such = " that -l and --state select" if narrowed else ""
        output.say(f"No gangs{such} found{where}{more}.", err=True)
