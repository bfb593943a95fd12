"""Label sets: pods with the same namespace and labels; and an index of label sets by each label.

Owned by ``cluster.labels.matching``.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from itertools import chain

from quorate.core.model import LabelSelector, PodSelector

_NOTHING: frozenset[int] = frozenset()
_Labels = tuple[tuple[str, str], ...]


class LabelSet:
    """Pods with the same labels in the same namespace, and their number on each row."""

    __slots__ = (
        "_matched",
        "_unsettled",
        "by_key",
        "labels",
        "leaving",
        "namespace",
        "pods",
        "rows",
    )

    def __init__(self, namespace: str, labels: _Labels) -> None:
        self.namespace = namespace
        self.labels = labels
        self.by_key = dict(labels)
        self.pods = 0
        """The number of its pods, those without a node included."""
        self.rows: dict[int, int] = {}
        self.leaving: dict[int, int] = {}
        """As ``rows``, but terminating pods only."""
        self._matched = _NOTHING
        self._unsettled: dict[int, bool] = {}
        """Changes not yet in ``_matched``: by selector's number, whether it matches now."""

    @property
    def matched(self) -> frozenset[int]:
        """The numbers of the selectors in use that match these pods."""
        if self._unsettled:
            differs = self._unsettled
            kept = (number for number in self._matched if number not in differs)
            came = (number for number, is_in in differs.items() if is_in)
            self._matched = frozenset((*kept, *came)) or _NOTHING
            self._unsettled = {}
        return self._matched

    def is_matched(self, number: int) -> bool:
        """Whether a selector is one of ``matched``."""
        return self._unsettled.get(number, number in self._matched)

    def match(self, number: int, *, is_in: bool) -> None:
        """Note whether a selector is in use and matches these pods."""
        if (number in self._matched) is is_in:
            self._unsettled.pop(number, None)
        else:
            self._unsettled[number] = is_in

    def count(self, row: int, pods: int, *, terminating: bool) -> None:
        """Add ``pods`` to the count of a row; a negative number removes pods."""
        _add(self.rows, row, pods)
        if terminating:
            _add(self.leaving, row, pods)


_Few = tuple[LabelSet] | dict[LabelSet, None]
"""Label sets; a tuple saves memory, because most label values have only one label set."""


class LabelSets:
    """All label sets of pods that exist."""

    def __init__(self) -> None:
        self._all: dict[tuple[str, _Labels], LabelSet] = {}
        self._of: dict[str, dict[LabelSet, None]] = {}
        """By namespace."""
        self._bearing: dict[str, dict[str, dict[str, _Few]]] = {}
        """By namespace, and key and value of a label."""

    def __len__(self) -> int:
        """Return the number of label sets."""
        return len(self._all)

    def acquire(self, namespace: str, labels: _Labels) -> tuple[LabelSet, bool]:
        """Count one more pod; return its label set, and whether the set is new."""
        found = self._all.get((namespace, labels))
        is_new = found is None
        if found is None:
            found = self._all[namespace, labels] = LabelSet(namespace, labels)
            self._of.setdefault(namespace, {})[found] = None
            bearing = self._bearing.setdefault(namespace, {})
            for key, value in found.by_key.items():
                _put(bearing.setdefault(key, {}), value, found)
        found.pods += 1
        return found, is_new

    def drop(self, label_set: LabelSet) -> None:
        """Count one pod fewer; a label set without pods is forgotten."""
        label_set.pods -= 1
        if label_set.pods:
            return
        namespace = label_set.namespace
        del self._all[namespace, label_set.labels]
        of, bearing = self._of[namespace], self._bearing[namespace]
        del of[label_set]
        for key, value in label_set.by_key.items():
            _remove(bearing[key], value, label_set)
            if not bearing[key]:
                del bearing[key]
        if not of:
            del self._of[namespace], self._bearing[namespace]

    def of(self, namespace: str) -> Collection[LabelSet]:
        """Return the label sets of one namespace."""
        return self._of.get(namespace, {})

    def candidates(self, selector: PodSelector) -> Iterator[LabelSet]:
        """Yield candidates, each once: all label sets that a selector matches, and others.

        In each namespace they are the sets with one of the required labels: the rarest one.
        """
        if selector.labels is None:
            return
        names: Iterable[str] = dict.fromkeys(selector.namespaces)
        if selector.namespace_selector is not None:
            names = self._of
        for name in names:
            yield from self._bearing_one_of(name, selector.labels)

    def _bearing_one_of(self, namespace: str, selector: LabelSelector) -> Iterable[LabelSet]:
        bearing = self._bearing.get(namespace, {})
        best: Collection[_Few] | None = None
        fewest = 0
        for one in selector.requirements:
            if one.operator not in ("In", "Exists"):
                continue
            by_value = bearing.get(one.key)
            if by_value is None:
                return ()
            found: Collection[_Few] = by_value.values()
            if one.operator == "In":
                values = dict.fromkeys(one.values)
                if len(values) <= len(by_value):
                    found = [by_value[value] for value in values if value in by_value]
                else:
                    found = [few for value, few in by_value.items() if value in values]
            number = sum(map(len, found))
            if best is None or number < fewest:
                best, fewest = found, number
        if best is None:
            return self.of(namespace)
        return list(chain.from_iterable(best))


def _put(by_value: dict[str, _Few], value: str, label_set: LabelSet) -> None:
    before = by_value.get(value)
    if before is None:
        by_value[value] = (label_set,)
    elif isinstance(before, dict):
        before[label_set] = None
    else:
        by_value[value] = {before[0]: None, label_set: None}


def _remove(by_value: dict[str, _Few], value: str, label_set: LabelSet) -> None:
    before = by_value[value]
    if isinstance(before, dict):
        del before[label_set]
        if before:
            return
    del by_value[value]


def _add(counts: dict[int, int], row: int, count: int) -> None:
    left = counts.get(row, 0) + count
    if left:
        counts[row] = left
    else:
        del counts[row]
