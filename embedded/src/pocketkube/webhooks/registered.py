"""Which webhooks want to be asked about a write, as administrators registered them.

In: the two kinds of configurations in the store. Out: hooks, in the order of their names. Source:
``staging/src/k8s.io/apiserver/pkg/admission/plugin/webhook`` of Kubernetes 1.36.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from pocketkube.api.admission.policies import Program, Write, compiled, context_of, takes
from pocketkube.matching.selectors import LabelSelector, selector_of
from pocketkube.objects import labels_of
from pocketkube.store.store import Event, Store

_GROUP = "admissionregistration.k8s.io"
Kind = Literal["mutating", "validating"]
_BUCKETS: dict[Kind, str] = {
    kind: f"{kind}webhookconfigurations.{_GROUP}" for kind in ("mutating", "validating")
}


class ConditionError(Exception):
    """A match condition of a hook cannot be evaluated."""


@dataclass(frozen=True, slots=True)
class Hook:
    """One webhook of one configuration."""

    spec: Mapping[str, Any]
    namespaces: LabelSelector
    objects: LabelSelector
    conditions: tuple[tuple[str, Program | str], ...]  # a text: it does not compile

    @property
    def name(self) -> str:
        """The hook's name, as refusals give it."""
        return str(self.spec["name"])

    @property
    def must_answer(self) -> bool:
        """Whether a write fails when the hook cannot be asked."""
        return bool(self.spec.get("failurePolicy", "Fail") != "Ignore")


class Registered:
    """All webhooks that are registered."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._hooks: dict[Kind, list[Hook]] | None = None
        for bucket in _BUCKETS.values():
            store.watch(bucket, self._forget)

    def _forget(self, _event: Event) -> None:
        self._hooks = None

    def concerned(self, kind: Kind, write: Write) -> list[Hook]:
        """Return the hooks whose rules and selectors take the write; most often none.

        Configurations of webhooks are never reviewed, so that a mistake in one can be mended.
        """
        if write.resource.bucket in _BUCKETS.values():
            return []
        return [hook for hook in self.hooks()[kind] if self._wants(hook, write)]

    def hooks(self) -> dict[Kind, list[Hook]]:
        """Return all hooks by kind."""
        if self._hooks is None:
            self._hooks = {kind: self._read(bucket) for kind, bucket in _BUCKETS.items()}
        return self._hooks

    def _read(self, bucket: str) -> list[Hook]:
        return [
            Hook(
                spec,
                selector_of(spec.get("namespaceSelector") or {}),
                selector_of(spec.get("objectSelector") or {}),
                tuple(
                    (one["name"], compiled(one["expression"]))
                    for one in spec.get("matchConditions") or ()
                ),
            )
            for entry in sorted(self._store.entries(bucket), key=lambda one: one.name)
            for spec in entry.object.get("webhooks") or ()
        ]

    def _wants(self, hook: Hook, write: Write) -> bool:
        if not any(takes(rule, write) for rule in hook.spec.get("rules") or ()):
            return False
        versions = [obj for obj in (write.obj, write.old) if obj is not None]
        if not any(hook.objects.matches(labels_of(obj)) for obj in versions):
            return False
        name = write.name if write.resource.bucket == "namespaces" else write.namespace
        if not name:
            return True
        namespace = self._store.get("namespaces", "", name)
        return hook.namespaces.matches(namespace.labels if namespace else {})


def matches_conditions(hook: Hook, write: Write) -> bool:
    """Tell whether all match conditions of a hook hold. Raises ConditionError: one has no value."""
    failed = ""
    for name, program in hook.conditions:
        if isinstance(program, str):
            failed = failed or f"{name}: {program}"
            continue
        try:
            if program.execute(context_of(write)) is not True:
                return False
        except (ValueError, KeyError, TypeError, RuntimeError) as error:
            failed = failed or f"{name}: {error}"
    if failed:
        raise ConditionError(failed)
    return True
