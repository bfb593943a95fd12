"""What a rule says of each node for one pod: that it passes, or why it does not."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from quorate.core.cluster.arrays import Mask
from quorate.core.cluster.storage.needs import Problem

Refusals = npt.NDArray[np.int8]


class Refusal(NamedTuple):
    """Why a node does not pass, in kube-scheduler's words.

    ``resolvable`` says whether fewer pods on the nodes could change it (its status Unschedulable),
    or not (UnschedulableAndUnresolvable), so that preemption is of no use.
    """

    message: str
    resolvable: bool


class Refused(NamedTuple):
    """Why one node does not take the pod: its texts, and whether fewer pods could change it."""

    texts: tuple[str, ...]
    resolvable: bool


class Verdict(NamedTuple):
    """``codes`` is int8[n]: 0 where the node passes, else 1 + an index of ``refusals``.

    Where a node may have several reasons at once, ``several`` holds each message with bool[n], and
    the refusals' own messages are not used.
    """

    codes: Refusals
    refusals: tuple[Refusal, ...]
    several: tuple[tuple[str, Mask], ...] = ()
    prefilter_code: int = 0
    """The code that is found before any node is looked at (PreFilter); 0: there is none."""
    prefilter_message: str = ""
    """Why no node is looked at (PreFilter rejects the pod); then all nodes have one code."""


def rejected(message: str, nodes: int, *, resolvable: bool = False) -> Verdict:
    """Return the verdict of a rule that rejects the pod whatever the nodes are."""
    return Verdict(
        np.ones(nodes, np.int8), (Refusal(message, resolvable),), prefilter_message=message
    )


def verdict_of(passes: Mask, refusal: Refusal) -> Verdict:
    """Return the verdict of a rule that has one reason; ``passes`` is bool[n]."""
    return Verdict((~passes).astype(np.int8), (refusal,))


def rejected_for(problems: Iterable[Problem], rule: str, nodes: int) -> Verdict | None:
    """Return the verdict of a rule that has a problem with the pod's claims; None: it has none."""
    for problem in problems:
        if problem.rule == rule:
            return rejected(problem.text, nodes)
    return None
