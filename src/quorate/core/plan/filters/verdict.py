"""What a rule says of each node for one pod: that it passes, or why it does not."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from quorate.core.state.wants import Problem

Refusals = npt.NDArray[np.int8]


class Refusal(NamedTuple):
    """Why a node does not pass, in kube-scheduler's words.

    ``resolvable`` says whether fewer pods on the nodes could change it (its status Unschedulable),
    or not (UnschedulableAndUnresolvable), so that preemption is of no use. ``also`` are further
    messages that hold for the same nodes. ``of_pod`` marks what is said of the pod before any node
    is looked at (kube-scheduler's PreFilter).
    """

    message: str
    resolvable: bool
    also: tuple[str, ...] = ()
    of_pod: bool = False


class Verdict(NamedTuple):
    """``codes`` is int8[n]: 0 where the node passes, else 1 + an index of ``refusals``."""

    codes: Refusals
    refusals: tuple[Refusal, ...]


def refuse_pod(
    problems: Iterable[Problem], rule: str, nodes: int, *, of_pod: bool = True
) -> Verdict | None:
    """Return a verdict that refuses every node, if this rule has a problem with the pod itself."""
    for problem in problems:
        if problem.rule == rule:
            refusal = Refusal(problem.text, resolvable=False, of_pod=of_pod)
            return Verdict(np.ones(nodes, np.int8), (refusal,))
    return None
