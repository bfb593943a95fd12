"""The whole state of a scheduler as plain values, to be compared before and after a question.

Walks all objects of the core from the scheduler on, with the order of dicts, the arrays and what
is shared. Left out are, by name, the caches of answers (``CACHES``): they hold nothing that cannot
be found again, and that their answers do not change is a property of its own.
"""

from __future__ import annotations

from collections import Counter, deque
from enum import Enum

import msgspec
import numpy as np

CACHES = {
    ("Cluster", "_handlers"): "methods",
    ("Cluster", "device_views"): "what each node sees of devices, brought up to date when asked",
    ("Cluster", "device_needs"): "what claims ask for, by what they are",
    ("Planner", "_rule_cache"): "which nodes pass which rules",
    ("Planner", "_singles"): "scores of nodes, by class of pods",
    ("Planner", "_searches"): "joint searches under way, which may begin anew",
    ("Planner", "_victim_searches"): "searches for victims under way, which may begin anew",
    ("PodClasses", "_by_selectors"): "classes of pods by whom their labels concern",
    ("PodClasses", "_variants_of"): "the same, by class",
    ("PodClasses", "_made"): "how many there have been",
    ("LabelSet", "_matched"): "the selectors that match a set of labels, settled when asked",
    ("LabelSet", "_unsettled"): "the same",
    ("PodClass", "_version"): "columns of resources, looked up when asked",
    ("PodClass", "_checked"): "the same",
    ("PodClass", "_columns"): "the same",
    ("PodClass", "_demands"): "the same",
    ("PodClass", "_missing"): "the same",
    ("DeviceNeeds", "problem"): "words that name one of several pods",
    ("VolumeSet", "volume_needs"): "what a pod's volumes demand",
    ("Devices", "specs"): "numbers of what claims ask for",
    ("Devices", "_spec_numbers"): "the same",
    ("Devices", "traits"): "numbers of what devices are",
    ("Devices", "_numbers"): "the same",
    ("Devices", "stale_nodes"): "what of the views is not up to date",
    ("Devices", "stale_pools"): "the same",
    ("Devices", "all_stale"): "the same",
    ("Neighbours", "_views"): "counts by node, of those asked for last",
    ("Columns", "_views"): "the same",
    ("NodeTable", "labels"): "labels, encoded when a rule first asks for them",
    ("NodeTable", "_columns_made"): "how often that was done",
}
"""Attributes that are left out, and what is in them."""
_PLAIN = (type(None), bool, int, float, str, bytes, Enum)


def state_of(scheduler):
    """Return the state as a flat dict: the path to each plain value, and the value."""
    found = {}
    _Walk(found, CACHES.keys()).visit("scheduler", scheduler)
    return found


def differences(before, after, most=5):
    """Return what differs in two states, in words."""
    said = []
    for path in dict.fromkeys((*before, *after)):
        one, two = before.get(path, "nothing"), after.get(path, "nothing")
        if type(one) is not type(two) or one != two:
            said.append(f"{path}: {str(one)[:80]} -> {str(two)[:80]}")
    return said[:most]


class _Walk:
    def __init__(self, found, left_out):
        self.found, self.left_out = found, left_out
        self.seen = {}
        self.kept = []
        """What was met: an id tells objects apart while they live."""

    def visit(self, path, value):
        if isinstance(value, (*_PLAIN, msgspec.Struct)) or _is_value(value):
            self.found[path] = value
            return
        if id(value) in self.seen:
            self.found[path] = f"as {self.seen[id(value)]}"
            return
        self.seen[id(value)] = path
        self.kept.append(value)
        match value:
            case np.ndarray():
                self.found[path] = (value.dtype.str, value.shape, value.tobytes())
            case dict():
                self._visit_dict(path, value)
            case set() | frozenset():
                self.found[path] = {_name(one) for one in value}
            case list() | tuple() | deque():
                self.found[path] = (type(value).__name__, len(value))
                for index, one in enumerate(value):
                    self.visit(f"{path}[{index}]", one)
            case _ if type(value).__module__.startswith("quorate."):
                self._visit_object(path, value)
            case _:
                self.found[path] = type(value).__qualname__

    def _visit_dict(self, path, value):
        kind = "Counter" if isinstance(value, Counter) else "dict"
        self.found[path] = (kind, tuple(map(_name, value)))
        for key, one in value.items():
            self.visit(f"{path}[{_name(key)}]", one)

    def _visit_object(self, path, value):
        kind = type(value)
        self.found[path] = kind.__qualname__
        for name in _attributes(value):
            if (kind.__name__, name) not in self.left_out:
                self.visit(f"{path}.{name}", getattr(value, name, "unset"))


def _is_value(value):
    """Whether this is a tuple of plain values alone, such as a key."""
    if not isinstance(value, tuple):
        return False
    return all(isinstance(one, (*_PLAIN, msgspec.Struct)) or _is_value(one) for one in value)


def _name(value):
    """Name a key or an element of a set: a value by what it is, an object by what names it."""
    if isinstance(value, (*_PLAIN, msgspec.Struct)):
        return repr(value)
    if isinstance(value, tuple):
        return f"({', '.join(map(_name, value))})"
    if isinstance(value, frozenset):
        return f"{{{', '.join(sorted(map(_name, value)))}}}"
    said = getattr(value, "id", getattr(value, "key", ""))
    return f"{type(value).__name__} {said}"


def _attributes(value):
    slots = [name for cls in type(value).__mro__ for name in getattr(cls, "__slots__", ())]
    return [*slots, *getattr(value, "__dict__", ())]
