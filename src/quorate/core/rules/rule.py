"""What a rule is: its name, its kind and its hooks. One file of ``rules`` makes one ``Rule``.

All hooks of a rule are in its file, but for its check in ``core.check``, which shares no code with
planning. ``table`` lists the rules, and derives every group of them from the fields here.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Set
from dataclasses import dataclass
from enum import Enum, auto
from typing import Protocol

import numpy as np
import numpy.typing as npt

from quorate.core.cluster.arrays import Ints, Mask
from quorate.core.cluster.cluster import Cluster
from quorate.core.cluster.gangs.gangs import PodEntry
from quorate.core.cluster.nodes.encoding import PodClass
from quorate.core.cluster.snapshot import Snapshot
from quorate.core.model import Pod, PodSpec
from quorate.core.room.amounts import Amounts, NodeAmounts
from quorate.core.room.room import Room
from quorate.core.rules.interests import Interest
from quorate.core.rules.verdict import Refused, Verdict


class RuleKind(Enum):
    """What a rule looks at, besides the pod. That decides when it has to be asked again."""

    NODE = auto()
    """The node's attributes: labels, taints, features. No pod changes what it says."""
    USE = auto()
    """What the pods on the node in question use of it."""
    VOLUMES = auto()
    """Claims and volumes, of all nodes."""
    PODS = auto()
    """Pods on all nodes, by their labels."""
    DEVICES = auto()
    """Claims of devices, and devices on all nodes."""


class OnNode(Protocol):
    """What one node would hold, for a rule of kind USE: pods come and go in a trial."""

    def shift(self, entry: PodEntry, pods: int) -> None:
        """Count the pod once more (``pods`` is 1) or once less (-1)."""

    def refused(self, pod_class: PodClass) -> Refused | None:
        """Return why the node does not take a pod of the class; None: it does."""


Shares = npt.NDArray[np.float64]
Judge = Callable[[PodClass, Room], Verdict | None]
Admits = Callable[[PodClass, Snapshot, int], bool]
FitsOn = Callable[[PodClass, Room, int, list[int]], bool]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """A rule that nodes must pass (``judge``), a score that they get, or both.

    A hook that is None does not exist for this rule. Masks are bool[n], counts and scores int64[n]:
    n rows of the room.
    """

    name: str
    """The name of kube-scheduler's plugin, or one that kube-scheduler does not have.

    ``core.check`` checks it under this name."""
    kind: RuleKind
    is_ours: bool = False
    """Whether quorate alone has it: parity does not ask about it."""

    judge: Judge | None = None
    """Return what each node says to one more pod of the class; None: the rule does not apply."""
    admits: Admits | None = None
    """Of kind NODE: whether the alive node at a row passes. It says what ``judge`` says."""
    cap: Callable[[PodClass, Room, Ints, bool], None] | None = None
    """Lower a count of pods for each node (in place) to what the rule lets in.

    The last argument says whether all the pods of the class are to be placed together. Rules of
    kind VOLUMES and PODS are asked to judge one more pod in any case."""
    fits: Callable[[PodClass, Room, Ints | None, Mask], None] | None = None
    """Of kind USE: clear a mask (bool[m], in place) on rows (None: all) that take no more pod."""
    fits_on: FitsOn | None = None
    """Of kind USE: whether a node takes one more pod, its free room by resource being given."""
    on_node: Callable[[Room, int, Cluster], OnNode] | None = None
    """Of kind USE: return what the node at a row holds, with what is placed there in the room."""

    score: Callable[[PodClass, Room, Mask], Ints | None] | None = None
    """Return 0 to 100 on the feasible nodes, from all but amounts; None: it scores nothing."""
    score_amounts: Callable[[PodClass, Amounts], Ints | None] | None = None
    """Return int64[m], 0 to 100, from the free room of m nodes; None: it scores nothing."""
    score_one: Callable[[PodClass, NodeAmounts], int] | None = None
    """Return what ``score_amounts`` says of one node (0 for None), in integers of Python."""

    utilisation: Callable[..., Shares] | None = None
    """Return how full nodes are with more pods: what whole gangs are packed by."""

    concerns: Callable[[PodClass], bool] | None = None
    """Of kinds USE and VOLUMES: whether the rule may refuse a node for more than a lack of room.

    Room and attributes are counted by class for all gangs that wait; such a class is looked at."""
    interests: Callable[[PodClass, Room], Set[Interest]] | None = None
    """Return the news that may let in a pod that the rule refused (see ``interests``).

    News of the node itself need no name: of its attributes, of room and ports on it."""
    fault: Callable[[PodSpec], str] | None = None
    """Return a field of the pod that keeps it from every node, and why; "" if there is none."""
    doubt: Callable[[Pod, Cluster, Collection[str]], str] | None = None
    """Return a field that may be why the pod fits nowhere, though it can become true; or "".

    The last argument are the messages of the rules that ruled nodes out."""
