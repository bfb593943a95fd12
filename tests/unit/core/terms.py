"""What pods say of other pods, short: terms and constraints as fields of a PodSpec."""

from quorate.core.model import (
    LabelSelector,
    PodSelector,
    PodTerm,
    Requirement,
    SpreadConstraint,
    WeightedPodTerm,
)
from tests.unit.core.world import TEAM

HOST, ZONE = "host", "zone"


def labels(**wanted) -> LabelSelector:
    """Return a selector by equal labels; of a tuple, one of its values; of None, no such label."""
    return LabelSelector(
        tuple(
            Requirement(key, "DoesNotExist")
            if value is None
            else Requirement(key, "In", value if isinstance(value, tuple) else (value,))
            for key, value in sorted(wanted.items())
        )
    )


def pods(*, namespaces=(TEAM,), of=None, nobody=False, **wanted) -> PodSelector:
    """Return a selector of pods by labels; ``of`` selects namespaces by their labels."""
    return PodSelector(tuple(namespaces), None if nobody else labels(**wanted), of)


def near(*selectors, by=ZONE):
    return {"affinity": tuple(PodTerm(one, by) for one in selectors)}


def apart(*selectors, by=HOST):
    return {"anti_affinity": tuple(PodTerm(one, by) for one in selectors)}


def pulled(selector, weight, by=ZONE):
    return {"preferred_affinity": (WeightedPodTerm(weight, PodTerm(selector, by)),)}


def spread(selector, *, skew=1, by=ZONE, **more):
    return {"spread": (SpreadConstraint(skew, by, more.pop("hard", True), selector, **more),)}
