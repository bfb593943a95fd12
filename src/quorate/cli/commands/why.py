"""``quorate why``: explain gangs, found by their own name, or that of a pod or a workload.

Out: text or data on standard output, and an exit code: 0 found, 1 not every name was found, 2 the
call, the cluster or the configuration is at fault.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from quorate.cli.asking.names import Name, NotAName, find, not_found
from quorate.cli.commands.look import Access, Wanted, look
from quorate.cli.show import output, why_text
from quorate.cli.show.gang_data import gang_object, list_of
from quorate.cli.show.survey_result import SurveyResult
from quorate.core.model import GangKey
from quorate.core.scheduler import Scheduler


def why(access: Access, typed: Sequence[str], form: str) -> int:
    """Explain the gangs of these names; return the exit code."""
    try:
        names = [Name.parse(one) for one in typed]
    except NotAName as error:
        return output.error(str(error))

    def choose(scheduler: Scheduler, where: str) -> list[GangKey]:
        return list(dict.fromkeys(key for name in names for key in find(scheduler, where, name)))

    def show(result: SurveyResult) -> int:
        if form in ("json", "yaml"):
            _print_data(result, form, is_one=len(names) == 1)
        else:
            for one in result.found:
                output.print_lines(why_text.lines_of(one, result, wide=form == "wide"))
        missing = not_found(result.scheduler, result.namespace, names)
        for said in missing:
            output.error(f"{said} See: quorate gangs -A --pods")
        return 1 if missing else 0

    return look(access, Wanted(choose, names), show)


def _print_data(result: SurveyResult, form: str, *, is_one: bool) -> None:
    """Print one object where one was asked for and found, else a list, as kubectl does."""
    objects: list[dict[str, Any]] = [gang_object(one, result) for one in result.found]
    if is_one and len(objects) == 1:
        output.print_data(objects[0], form)
    elif objects:
        output.print_data(list_of("Gang", objects), form)
