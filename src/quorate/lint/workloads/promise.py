"""What goes into a question about an operator's object, and what comes out: ``Promise``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from quorate.lint.objects import KubeObject, text
from quorate.lint.pod_sources import PodSource
from quorate.lint.tree import Path

COSCHEDULING_API = "scheduling.x-k8s.io/v1alpha1"
VOLCANO_API = "scheduling.volcano.sh/v1beta1"
VOLCANO = "volcano"
"""What operators call the scheduler whose PodGroups they make, in flags, fields and pods."""

Runtimes = Mapping[tuple[str, str, str], KubeObject]
"""Training runtimes of the files by kind, namespace ("" for those of the cluster) and name."""


@dataclass(frozen=True, slots=True, eq=False)
class Promise:
    """A gang that an operator will make. ``times`` such gangs are made, all alike.

    ``sources`` are the pods of one of them, ``min_count`` is what its PodGroup will say, None where
    the object does not say it rightly; ``min_path`` is the field that does. ``api_version`` and
    ``name`` are the PodGroup's, ``maker`` says who makes it, and on which condition.
    ``names_scheduler`` says whether the operator writes pods' ``schedulerName``: "always", over
    what templates say, "unless written", or "", which is never. ``scheduler`` is that name, ""
    where a flag of the operator decides. ``queue`` and ``priority_class`` are the fields that name
    those of the PodGroup, empty where none does.
    """

    object: KubeObject
    api_version: str
    name: str
    sources: tuple[PodSource, ...]
    min_count: int | None
    min_path: Path
    maker: str
    names_scheduler: str = ""
    scheduler: str = ""
    times: int | None = 1
    queue: Path = ()
    priority_class: Path = ()


@dataclass(frozen=True, slots=True, eq=False)
class Workload:
    """An object that makes pods, none of which names a gang itself.

    ``schedulers`` are the names under which gangs are placed as gangs.
    """

    object: KubeObject
    namespace: str
    sources: tuple[PodSource, ...]
    schedulers: tuple[str, ...]
    runtimes: Runtimes

    @property
    def named(self) -> set[str]:
        """The schedulers that templates name, be they nobody's."""
        return {text(one.spec.get("schedulerName")) for one in self.sources} - {""}

    @property
    def is_ours(self) -> bool:
        """Whether a template names a scheduler of gangs."""
        return not self.named.isdisjoint(self.schedulers)


def total(sources: tuple[PodSource, ...]) -> int | None:
    """Return how many pods these make; None when one of them does not say."""
    counts = [one.count for one in sources]
    known = [one for one in counts if one is not None]
    return sum(known) if len(known) == len(counts) else None


def counted(source: PodSource, count: int | None, at: Path) -> PodSource:
    """Return the source with another number of pods, which the field ``at`` says."""
    return replace(source, count=count, count_path=at)


def whole(value: object) -> int | None:
    """Return ``value`` if it is a number of pods, 0 or more, else None."""
    return value if type(value) is int and value >= 0 else None
