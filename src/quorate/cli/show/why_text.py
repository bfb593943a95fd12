"""The text of ``quorate why``: the sentence, then the facts, each on a line with its name first."""

from __future__ import annotations

from collections.abc import Iterator

from rich.text import Text

from quorate.cli.asking.told import Line
from quorate.cli.show.survey_result import STYLES, SurveyResult, age, state_of
from quorate.core.model import GangKey
from quorate.core.model.reasons import Blocker, Explanation, GangState, Reason
from quorate.shell.apis import api_words

_PODS_MAX = 20
"""So many pods are listed by ``wide``: -o json has all facts, kubectl has all pods."""


def lines_of(explanation: Explanation, result: SurveyResult, *, wide: bool) -> list[Text]:
    """Return what a person reads; ``wide`` adds what is known of the gang and its pods."""
    reason = "" if explanation.reason is Reason.NONE else f", {explanation.reason}"
    title = Text(f"{_title(explanation.key)}: ", style="")
    state = state_of(explanation)
    title.append(f"{state}{reason}", style=STYLES[state])
    lines = [f"  {explanation.message}", "", *_facts(explanation, result.line)]
    if wide:
        lines += _more_facts(explanation, result)
    lines += _notes(explanation, result, wide=wide)
    return [title, *map(Text, lines)]


def _notes(explanation: Explanation, result: SurveyResult, *, wide: bool) -> Iterator[str]:
    said, is_led = result.said.get(explanation.key), result.leader.holder != ""
    if said is not None and (wide or said.is_older or not is_led):
        since = ", and pods have come, gone or got nodes since" if said.is_older else ""
        yield f"  note      the scheduler said this {age(result.now_s - said.at_s)} ago{since}"
    if not is_led and explanation.state is not GangState.STARTED:
        yield "  note      no quorate scheduler holds its lease: is one running?"


def _facts(explanation: Explanation, line: Line) -> Iterator[str]:
    members = explanation.members
    counts = [
        f"{members.needed} needed",
        f"{members.exist} exist",
        f"{members.bound} bound",
        f"{members.running} running",
        *(f"{n} {what}" for n, what in _odd_members(explanation) if n),
    ]
    yield f"  members   {', '.join(counts)}"
    if place := line.places.get(explanation.key):
        where = f" in namespace {line.namespace}" if line.namespace else ""
        yield f"  place     {place} of {len(line.places)} in line{where}"
    for blocker in explanation.blockers:
        yield f"  pods like {blocker.pod}: {blocker.fit} of {blocker.pods} fit now"
        yield from _in_the_way(blocker, explanation.hint)
    if explanation.held:
        yield f"  held      {explanation.held}"
    for warning in explanation.warnings:
        yield f"  warning   {warning}"
    if explanation.hint:
        yield f"  hint      {explanation.hint}"


def _in_the_way(blocker: Blocker, hint: str) -> Iterator[str]:
    """Yield what keeps pods of one class from nodes; the gang's hint is told elsewhere."""
    for rule in blocker.ruled_out:
        yield _counted(rule.nodes, rule.message)
    for closed in blocker.closed:
        more = ", ..." if closed.nodes > len(closed.some) else ""
        some = ", ".join(closed.some)
        yield _counted(closed.nodes, f"not open to it, {closed.why}: {some}{more}")
    if blocker.own_rule:
        yield f"    {blocker.own_rule}"
    if blocker.nearest_miss and blocker.nearest_miss not in hint:
        yield f"    nearest miss: {blocker.nearest_miss}"
    if blocker.hint and blocker.hint not in hint:
        yield f"    hint: {blocker.hint}"


def _counted(nodes: int, words: str) -> str:
    return f"    {nodes:>6} {'node: ' if nodes == 1 else 'nodes:'} {words}"


def _more_facts(explanation: Explanation, result: SurveyResult) -> Iterator[str]:
    gang = result.gang(explanation.key)
    yield f"  age       {age(result.now_s - gang.created_s)}"
    yield f"  priority  {explanation.priority}"
    if explanation.nodes:
        yield f"  nodes     {explanation.nodes} in the cluster"
    entries = sorted(gang.members.values(), key=lambda entry: entry.pod.name)
    for entry in entries[:_PODS_MAX]:
        pod = entry.pod
        state = pod.phase if entry.node else entry.where.name.lower()
        where = f" on {entry.node}" if entry.node else ""
        owner = f", of {pod.owner.title}" if pod.owner else ""
        yield f"  pod       {pod.name}: {state}{where} ({pod.scheduler}{owner})"
    if len(entries) > _PODS_MAX:
        yield f"  pods      {len(entries) - _PODS_MAX} more"


def _odd_members(explanation: Explanation) -> tuple[tuple[int, str], ...]:
    members = explanation.members
    return (
        (members.gated, "scheduling-gated"),
        (members.terminating, "terminating"),
        (members.invalid, "not placeable"),
        (members.succeeded, "succeeded"),
        (members.failed, "failed"),
    )


def _title(key: GangKey) -> str:
    if key.is_single:
        return f"Pod {key}"
    words = api_words().get(key.dialect)
    if words is None or not words.kind:
        return f"Gang {key} ({words.member_key if words else key.dialect})"
    return f"Gang {key} ({words.kind}, {words.api_version})"
