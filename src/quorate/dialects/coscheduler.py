"""Labels of CoreWeave's ``coscheduler``: a pod names its gang and the gang's min; no object.

Determined AI writes them too, with min "0" on a task that is no gang.
"""

from __future__ import annotations

from quorate.dialects.base import LIKE, UNLIKE, PodKey
from quorate.dialects.common.label_pair import label_pair

NAME = "coscheduler"
MEMBER_LABEL = "pod-group.scheduling.sigs.k8s.io/name"
MIN_LABEL = "pod-group.scheduling.sigs.k8s.io/min-available"


def _likeness(key: str) -> int:
    return LIKE if "sigs" in key and key.endswith("name") else UNLIKE


DIALECT = label_pair(
    NAME,
    MEMBER_LABEL,
    MIN_LABEL,
    # The prose of scheduler-plugins' KEP-2 spreads this one.
    mistaken_keys=(
        PodKey("label", "pod-group.scheduling.x-k8s.io/name"),
        # Koordinator's own: beside it stands min-available, as in the labels of this dialect.
        PodKey("annotation", "gang.scheduling.koordinator.sh/name"),
    ),
    likeness=_likeness,
)
