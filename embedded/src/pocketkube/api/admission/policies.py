"""ValidatingAdmissionPolicies: CEL expressions that refuse writes, as administrators write them.

In: the object of a write. Out: nothing, or ApiError. Rules, selectors and validations of a policy
are known; what else one may hold is refused when it is created (``registry.rules.others``). CEL is
the library ``common-expression-language``, imported when the first policy is bound. Source:
``pkg/admission/plugin/policy/validating`` of k8s.io/apiserver 1.36.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Protocol

from pocketkube import errors
from pocketkube.api.writing import User
from pocketkube.matching.selectors import selector_of
from pocketkube.objects import Object, labels_of, name_of
from pocketkube.schema.resource import Resource
from pocketkube.store.store import Event, Store

_GROUP = "admissionregistration.k8s.io"
_POLICIES = f"validatingadmissionpolicies.{_GROUP}"
_BINDINGS = f"validatingadmissionpolicybindings.{_GROUP}"


class Program(Protocol):
    """A compiled CEL expression."""

    def execute(self, context: dict[str, Any]) -> object:
        """Return the expression's value. Raises what the library raises."""


@dataclass(frozen=True, slots=True)
class Write:
    """A write that policies may refuse."""

    operation: str  # CREATE, UPDATE, DELETE
    resource: Resource
    subresource: str
    namespace: str
    name: str
    obj: Object | None
    old: Object | None
    user: User


class Policies:
    """All bound policies; asks none of them while there are none."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._bound: list[tuple[Object, Object]] | None = None  # policies, each with a binding
        for bucket in (_POLICIES, _BINDINGS):
            store.watch(bucket, self._forget)

    def _forget(self, _event: Event) -> None:
        self._bound = None

    @property
    def any(self) -> bool:
        """Tell whether a policy is bound."""
        if self._bound is None:
            self._bound = list(self._pairs())
        return bool(self._bound)

    def _pairs(self) -> Iterator[tuple[Object, Object]]:
        for entry in self._store.entries(_BINDINGS):
            binding = entry.object
            policy = self._store.get(_POLICIES, "", binding["spec"].get("policyName", ""))
            if policy is not None:
                yield policy.object, binding

    def check(self, write: Write) -> None:
        """Ask every policy that matches. Raises ApiError for the first one that refuses."""
        for policy, binding in self._bound or ():
            matching = policy["spec"].get("matchConstraints") or {}
            narrowing = binding["spec"].get("matchResources") or {}
            if not matching.get("resourceRules"):
                continue
            if self._selects(matching, write) and self._selects(narrowing, write):
                for validation in policy["spec"].get("validations") or ():
                    why = _broken(validation, write)
                    if why:
                        raise _refusal(policy, binding, write, why)

    def _selects(self, constraints: Mapping[str, Any], write: Write) -> bool:
        """Tell whether rules and selectors, as far as there are any, take a write."""
        rules = constraints.get("resourceRules")
        if rules and not any(_takes(rule, write) for rule in rules):
            return False
        labels = labels_of(write.obj or write.old or {})
        if not selector_of(constraints.get("objectSelector") or {}).matches(labels):
            return False
        namespace = self._store.get("namespaces", "", write.namespace)
        wanted = selector_of(constraints.get("namespaceSelector") or {})
        return not write.resource.namespaced or wanted.matches(
            namespace.labels if namespace else {}
        )


@lru_cache(maxsize=256)
def _compiled(expression: str) -> Program:
    """Return a program. Raises ValueError: the expression does not compile."""
    import cel  # noqa: PLC0415 - a fifth of a second, for few clusters

    program: Program = cel.compile(expression)
    return program


def _broken(validation: Mapping[str, Any], write: Write) -> str:
    """Return why a validation does not hold, empty when it does. What cannot be evaluated fails."""
    expression = str(validation["expression"]).strip()
    try:
        if _compiled(expression).execute(_context(write)) is True:
            return ""
    except (ValueError, KeyError, TypeError, RuntimeError) as error:
        return f"expression '{expression}' resulted in error: {error}"
    return validation.get("message") or f"failed expression: {expression}"


def _refusal(policy: Object, binding: Object, write: Write, why: str) -> errors.ApiError:
    who = f"ValidatingAdmissionPolicy '{name_of(policy)}' with binding '{name_of(binding)}'"
    text = f"{who} denied request: {why}"
    error = errors.forbidden(write.resource.group, write.resource.plural, write.name, text)
    error.code, error.reason = 422, "Invalid"
    error.details["causes"] = [{"message": text}]
    return error


def _takes(rule: Mapping[str, Any], write: Write) -> bool:
    """Tell whether a rule names the resource and the operation of a write."""
    resource, sub = write.resource, write.subresource
    what = f"{resource.plural}/{sub}" if sub else resource.plural
    every = f"*/{sub}" if sub else "*"
    wanted: tuple[tuple[str, set[str]], ...] = (
        ("operations", {write.operation, "*"}),
        ("apiGroups", {resource.group, "*"}),
        ("apiVersions", {resource.version, "*"}),
        ("resources", {what, every, f"{resource.plural}/*", "*/*"}),
    )
    return all(values & set(rule.get(field) or ()) for field, values in wanted)


def _context(write: Write) -> dict[str, Any]:
    """Return the variables of CEL expressions about a write."""
    resource, user = write.resource, write.user
    kind = {"group": resource.group, "version": resource.version, "resource": resource.plural}
    return {
        "object": write.obj,
        "oldObject": write.old,
        "request": {
            "operation": write.operation,
            "name": write.name,
            "namespace": write.namespace,
            "subResource": write.subresource,
            "resource": kind,
            "userInfo": {"username": user.name, "groups": list(user.groups), "uid": user.uid},
        },
    }
