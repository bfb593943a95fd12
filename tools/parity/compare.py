"""List where the core's answer differs from kube-scheduler's, in words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from quorate.core.rules.devices import dynamic_resources
from quorate.core.rules.rule import RuleKind
from quorate.core.rules.table import FILTERS
from tools.parity.ours import Answer

Theirs = Mapping[str, Any]

_DEVICES = dynamic_resources.RULE.name
_CUT_SHORT = "the search for devices was cut short: it took too many steps"
_UNKNOWN = frozenset({"GangScheduling", "NodeName"})
_OF_VOLUMES = frozenset(rule.name for rule in FILTERS if rule.kind is RuleKind.VOLUMES)


def differences(ours: Answer, theirs: Theirs) -> list[str]:
    """Return one line for each difference; none when both agree."""
    if ours.held:
        return [f"we hold the pod: {ours.held}"]
    found = [
        *_of_filters(ours, theirs),
        *_of_feasible(ours, theirs),
    ]
    if not found:
        found += _of_preemption(ours, theirs)
        found += _of_sentence(ours, theirs)
    return found


def ends_in_error(theirs: Theirs) -> bool:
    """Whether kube-scheduler gave the pod up because an expression about devices is broken."""
    return any(
        (verdicts or {}).get(_DEVICES, {}).get("code") == "Error"
        for verdicts in theirs["filter"].values()
    )


def is_cut_short(said: str) -> bool:
    """Whether a refusal of ours is that a search for devices took too many steps."""
    return said == _CUT_SHORT


def cut_short(ours: Answer) -> frozenset[str]:
    """Return the nodes where we gave up a search that kube-scheduler may bring to its end."""
    return frozenset(
        node
        for node, refused in ours.filters.items()
        if _DEVICES in refused and is_cut_short(*refused[_DEVICES][1])
    )


def differences_by_node(ours: Answer, theirs: Theirs) -> list[str]:
    """Compare the rule of devices by node; an error of kube-scheduler's is a refusal of ours.

    Nodes where a search was cut short are left out.
    """
    found = []
    left_out = cut_short(ours)
    for node, said in theirs["filter"].items():
        if node in left_out:
            continue
        verdict = (said or {}).get(_DEVICES)
        mine = ours.filters[node].get(_DEVICES)
        if verdict is not None and verdict["code"] == "Error":
            same = mine is not None
        elif verdict is not None and verdict["code"] != "PreFilterResult":
            same = mine == (verdict["code"], tuple(verdict["reasons"]))
        else:
            same = mine is None
        if not same:
            found.append(f"{node}: ours {mine}, kube-scheduler's {verdict}")
    return found


def _of_filters(ours: Answer, theirs: Theirs) -> list[str]:
    found = []
    unasked = _UNKNOWN | _unasked_volume_rules(theirs)
    for node in sorted(ours.filters):
        says = {
            rule: (verdict["code"], tuple(sorted(verdict.get("reasons") or ())))
            for rule, verdict in (theirs["filter"].get(node) or {}).items()
            if rule not in unasked and verdict["code"] != "Success"
        }
        for rule in sorted(says.keys() | ours.filters[node].keys()):
            mine, other = ours.filters[node].get(rule), says.get(rule)
            if rule in unasked:
                continue
            if mine != other and not _both_exclude(mine, other):
                found.append(f"{node}: {rule}: ours {mine}, kube-scheduler's {other}")
    return found


def _unasked_volume_rules(theirs: Theirs) -> frozenset[str]:
    """Return the volume rules that we leave out because another one rejects the pod's claims.

    kube-scheduler does not come to ask them either; the oracle asks each plugin by itself.
    """
    before = theirs.get("preFilter") or {}
    rejects = {
        rule
        for rule in _OF_VOLUMES
        if (before.get(rule) or {}).get("code") == "UnschedulableAndUnresolvable"
    }
    return _OF_VOLUMES - rejects if rejects else frozenset()


def _both_exclude(mine: object, other: tuple[str, tuple[str, ...]] | None) -> bool:
    """Whether a PreFilter left the node out: kube-scheduler does not give a text per rule then."""
    return mine is not None and other is not None and other[0] == "PreFilterResult"


def _of_feasible(ours: Answer, theirs: Theirs) -> list[str]:
    said = sorted(theirs.get("feasible") or ())
    return [] if ours.feasible == said else [f"feasible: ours {ours.feasible}, their {said}"]


def _of_preemption(ours: Answer, theirs: Theirs) -> list[str]:
    said = theirs.get("preemption")
    if said is None or ours.preemption is None:
        return []
    mine = ours.preemption
    candidates = said.get("candidates") or {}
    found = []
    for node in sorted(candidates.keys() | mine.candidates.keys()):
        other, clearing = candidates.get(node), mine.candidates.get(node)
        expected = other and (sorted(other["victims"]), other.get("pdbViolations", 0))
        have = clearing and (sorted(clearing.victims), clearing.violations)
        if expected != have:
            found.append(f"{node}: victims: ours {have}, kube-scheduler's {expected}")
    best = said.get("best") or [""]
    if mine.node not in best:
        found.append(f"cleared: ours {mine.node!r}, kube-scheduler's best are {best}")
    return found


def _of_sentence(ours: Answer, theirs: Theirs) -> list[str]:
    if ours.feasible:
        return []
    said = str(theirs.get("message", ""))
    if said == ours.message:
        return []
    return [f"sentence: ours {ours.message!r}, kube-scheduler's {said!r}"]
