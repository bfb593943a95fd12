"""How pods of one scheduler name are placed: a profile.

Made by ``shell.configuration.config``; read by filters, scores and preemption.
"""

from __future__ import annotations

from typing import Literal

import msgspec

Packing = Literal["most-allocated", "least-allocated"]
"""Which nodes are better: the fullest ones, or the emptiest."""


class Profile(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The choices for one scheduler name. The defaults place pods as kube-scheduler's do.

    ``packs_gangs`` means that pods of no gang are placed as gangs of one, by ``Policy.packing``;
    else they are placed one at a time, by all scores, and the nodes of ``packing`` count as better.
    With ``preempts`` pods of no gang may take the room of pods of lower priority.
    """

    packs_gangs: bool = False
    packing: Packing = "least-allocated"
    preempts: bool = True


KUBE_SCHEDULER = Profile()
GANGS = Profile(packs_gangs=True, preempts=False)
