"""Names to integers: resources to columns, pod shapes to classes, label values and taints to codes.

Everything that a filter compares is encoded once, when it is first seen, so that planning works on
integer arrays. Codes are given in order of arrival: the same changes give the same codes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from quorate.core.model import PodShape, SpreadConstraint
from quorate.core.profile import GANGS, Profile
from quorate.core.state.arrays import Codes, grown
from quorate.core.state.device_asks import Ask

if TYPE_CHECKING:
    from quorate.core.state.wants import Wants

CPU, MEMORY, EPHEMERAL_STORAGE, PODS = range(4)
_MATCHING_MAX = 16384
_Variant = tuple[int, frozenset[int], tuple[SpreadConstraint, ...], "Wants | None", Ask | None]
FIRST_RESOURCES = ("cpu", "memory", "ephemeral-storage", "pods")


class Resources:
    """Resource names and their columns; the first four are always there."""

    def __init__(self) -> None:
        self.names: list[str] = list(FIRST_RESOURCES)
        self.columns: dict[str, int] = {name: index for index, name in enumerate(self.names)}

    def column(self, name: str) -> int:
        """Return the column of ``name``; a new name gets the next one."""
        column = self.columns.get(name)
        if column is None:
            column = self.columns[name] = len(self.names)
            self.names.append(name)
        return column


class PodClass:
    """Pods that are alike to the scheduler: what one takes, as ``(column, amount)``, amounts > 0.

    ``base`` is the number of its shape and profile; ``checked`` are the demands for which nodes
    must have room (a profile may ignore some). ``matched`` are the selectors that match them: two
    classes of one shape differ in whom their pods' labels concern. ``spread`` are the pods' own
    constraints or the defaults; ``spread_needs_labels`` says whether a node without one of their
    labels scores nothing. ``wants`` (``state.wants``) is what their volumes demand, ``ask`` what
    their claims of devices ask for; None when they have none.
    """

    __slots__ = (
        "ask",
        "base",
        "checked",
        "columns",
        "demands",
        "id",
        "matched",
        "profile",
        "shape",
        "spread",
        "spread_needs_labels",
        "wants",
    )

    def __init__(
        self,
        class_id: int,
        shape: PodShape,
        demands: tuple[tuple[int, int], ...],
        checked: tuple[tuple[int, int], ...],
        profile: Profile,
    ) -> None:
        self.wants: Wants | None = None
        self.id = class_id
        self.base = class_id
        self.shape = shape
        self.profile = profile
        self.checked = checked
        self.demands = demands
        self.columns = tuple(column for column, _ in demands)
        self.matched: frozenset[int] = frozenset()
        self.spread = shape.spread
        self.spread_needs_labels = True
        self.ask: Ask | None = None

    def matching(
        self,
        class_id: int,
        matched: frozenset[int],
        defaults: tuple[SpreadConstraint, ...],
    ) -> PodClass:
        """Return the class of the pods of this one whose labels these selectors match.

        ``defaults`` are the constraints of pods that have none of their own.
        """
        found = PodClass(class_id, self.shape, self.demands, self.checked, self.profile)
        found.base, found.matched = self.base, matched
        if defaults:
            found.spread = defaults
            found.spread_needs_labels = self.profile.default_spread is not None
        return found


class PodClasses:
    """Pod shapes and their classes."""

    def __init__(self, resources: Resources) -> None:
        self._resources = resources
        self._by_shape: dict[tuple[PodShape, Profile], PodClass] = {}
        self._matching: dict[_Variant, PodClass] = {}
        self._made = 0
        self.by_id: dict[int, PodClass] = {}
        """The classes of shapes alone."""

    def of(self, shape: PodShape, profile: Profile = GANGS) -> PodClass:
        """Return the class of ``shape`` under a profile; a new shape gets a new class."""
        found = self._by_shape.get((shape, profile))
        if found is None:
            column = self._resources.column
            asked = [(name, amount) for name, amount in shape.requests if amount > 0]
            one = (PODS, 1)
            demands = (*((column(name), amount) for name, amount in asked), one)
            ignored = _ignored(profile, [name for name, _ in asked])
            checked = demands
            if ignored:
                checked = (*((column(n), amount) for n, amount in asked if n not in ignored), one)
            found = PodClass(self._made, shape, demands, checked, profile)
            self._made += 1
            self._by_shape[shape, profile] = self.by_id[found.id] = found
        return found

    def matching(
        self,
        base: PodClass,
        matched: frozenset[int],
        defaults: tuple[SpreadConstraint, ...] = (),
        wants: Wants | None = None,
        ask: Ask | None = None,
    ) -> PodClass:
        """Return the class of the pods of a shape whose labels these selectors match.

        ``defaults`` as in ``PodClass.matching``; ``wants`` is what their volumes demand, ``ask``
        what their claims of devices ask for.
        """
        if not matched and not defaults and wants is None and ask is None:
            return base
        variant = base.id, matched, defaults, wants, ask
        found = self._matching.get(variant)
        if found is None:
            if len(self._matching) >= _MATCHING_MAX:
                self._matching.clear()  # numbers are never given twice, so an old one does no harm
            found = base.matching(self._made, matched, defaults)
            found.wants, found.ask = wants, ask
            self._made += 1
            self._matching[variant] = found
        return found


def _ignored(profile: Profile, names: list[str]) -> set[str]:
    """Return which of these resources the profile does not check: extended ones only."""
    if not (profile.ignored_resources or profile.ignored_resource_groups):
        return set()
    groups = profile.ignored_resource_groups
    return {
        name
        for name in names
        if "/" in name and (name in profile.ignored_resources or name.split("/")[0] in groups)
    }


class CodeColumn:
    """One code for each node row: of a label's value, or of a set of taints. Absent is -1."""

    def __init__(self, rows: int) -> None:
        self.codes: Codes = np.full(rows, -1, dtype=np.int32)
        self.values: list[object] = []
        self.code_of: dict[object, int] = {}

    def set(self, row: int, value: object | None) -> None:
        """Encode ``value`` (None: absent) at ``row``."""
        if value is None:
            self.codes[row] = -1
            return
        code = self.code_of.get(value)
        if code is None:
            code = self.code_of[value] = len(self.values)
            self.values.append(value)
        self.codes[row] = code

    def grow(self, rows: int) -> None:
        """Make room for ``rows`` rows."""
        self.codes = grown(self.codes, rows, fill=-1)
