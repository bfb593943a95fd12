"""What a rule says of each node for one pod: that it passes, or why it does not."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Refusals = npt.NDArray[np.int8]


class Refusal(NamedTuple):
    """Why a node does not pass, in kube-scheduler's words.

    ``resolvable`` says whether fewer pods on the nodes could change it (its status Unschedulable),
    or not (UnschedulableAndUnresolvable), so that preemption is of no use.
    """

    message: str
    resolvable: bool


class Verdict(NamedTuple):
    """``codes`` is int8[n]: 0 where the node passes, else 1 + an index of ``refusals``."""

    codes: Refusals
    refusals: tuple[Refusal, ...]
