"""The table of ``quorate gangs``. In: explanations. Out: a table; ``wide`` adds columns."""

from __future__ import annotations

from collections.abc import Iterator

from rich.text import Text

from quorate.cli.show import output
from quorate.cli.show.survey_result import SurveyResult, age
from quorate.core.model import Owner
from quorate.core.model.reasons import Explanation, GangState, Reason

_COLUMNS = ("NAMESPACE", "GANG", "API", "STATE", "MEMBERS", "AGE", "REASON", "WHY")
_WIDE_COLUMNS = ("RUNNING", "PRIORITY", "SCHEDULER", "OWNER")
_STYLES = {GangState.STARTED: "green", GangState.STARTING: "cyan", GangState.WAITING: "yellow"}


def print_table(found: list[Explanation], result: SurveyResult, *, wide: bool) -> None:
    """Print one row for each gang."""
    columns = _columns(wide=wide)
    folded = [(column, column == "WHY") for column in columns]
    output.print_table(folded, (_row(one, result, columns) for one in found))


def _row(
    explanation: Explanation, result: SurveyResult, columns: tuple[str, ...]
) -> Iterator[Text]:
    for column, cell in _cells(explanation, result).items():
        if column in columns:
            yield Text(cell, style=_STYLES[explanation.state] if column == "STATE" else "")


def _columns(*, wide: bool) -> tuple[str, ...]:
    return (*_COLUMNS[:-1], *_WIDE_COLUMNS, _COLUMNS[-1]) if wide else _COLUMNS


def _cells(explanation: Explanation, result: SurveyResult) -> dict[str, str]:
    key, members = explanation.key, explanation.members
    gang = result.gang(key)
    first = next(iter(gang.members.values()), None)
    return {
        "NAMESPACE": key.namespace,
        "GANG": key.bare_name,
        "API": key.dialect,
        "STATE": str(explanation.state),
        "MEMBERS": f"{members.bound}/{members.needed}",
        "AGE": age(result.now_s - gang.created_s),
        "REASON": "" if explanation.reason is Reason.NONE else str(explanation.reason),
        "RUNNING": str(members.running),
        "PRIORITY": str(gang.priority),
        "SCHEDULER": first.pod.scheduler if first else "",
        "OWNER": _owner(first.pod.owner) if first else "",
        "WHY": explanation.message,
    }


def _owner(owner: Owner | None) -> str:
    return f"{owner.kind}/{owner.name}" if owner else ""
