"""ValidatingAdmissionPolicies: CEL expressions that refuse writes, as administrators write them.

In: the object of a write. Out: nothing, or ApiError. Policies without parameters are known; CEL is
the library ``common-expression-language``, imported when the first policy is bound. Source:
``pkg/admission/plugin/policy/validating`` of k8s.io/apiserver 1.36.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from pocketkube import errors
from pocketkube.api.writing import User
from pocketkube.matching.selectors import LabelSelector, selector_of
from pocketkube.objects import Object, labels_of
from pocketkube.schema.resource import Resource
from pocketkube.store.store import Event, Store

_GROUP = "admissionregistration.k8s.io"
_POLICIES = f"validatingadmissionpolicies.{_GROUP}"
_BINDINGS = f"validatingadmissionpolicybindings.{_GROUP}"
_CODES = {"Unauthorized": 401, "Forbidden": 403, "Invalid": 422, "RequestEntityTooLarge": 413}


class Program(Protocol):
    """A compiled CEL expression."""

    def execute(self, context: dict[str, Any]) -> object:
        """Return the expression's value. Raises what the library raises."""


@dataclass(frozen=True, slots=True)
class Write:
    """A write that policies may refuse."""

    operation: str  # CREATE, UPDATE, DELETE, CONNECT
    resource: Resource
    subresource: str
    namespace: str
    name: str
    obj: Object | None
    old: Object | None
    user: User
    warn: Callable[[str], None]


@dataclass(frozen=True, slots=True)
class _Bound:
    """One policy under one of its bindings."""

    policy: Object
    binding: Object
    checks: tuple[tuple[Mapping[str, Any], Program | str], ...]  # a text: it does not compile
    namespaces: LabelSelector
    objects: LabelSelector


class Policies:
    """All bound policies; asks none of them while there are none."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._bound: list[_Bound] | None = None
        for bucket in (_POLICIES, _BINDINGS):
            store.watch(bucket, self._forget)

    def _forget(self, _event: Event) -> None:
        self._bound = None

    @property
    def any(self) -> bool:
        """Tell whether a policy is bound."""
        if self._bound is None:
            self._bound = self._compiled()
        return bool(self._bound)

    def check(self, write: Write) -> None:
        """Ask every policy that matches. Raises ApiError for the first one that refuses."""
        for one in self._bound or ():
            if self._matches(one, write):
                self._ask(one, write)

    def _compiled(self) -> list[_Bound]:
        found = []
        for entry in self._store.entries(_BINDINGS):
            binding = entry.object
            policy = self._store.get(_POLICIES, "", binding["spec"].get("policyName", ""))
            if policy is None:
                continue
            spec = policy.object["spec"]
            matching = spec.get("matchConstraints") or {}
            narrowing = binding["spec"].get("matchResources") or {}
            found.append(
                _Bound(
                    policy.object,
                    binding,
                    tuple((v, compiled(v["expression"])) for v in spec.get("validations") or ()),
                    _both(matching, narrowing, "namespaceSelector"),
                    _both(matching, narrowing, "objectSelector"),
                )
            )
        return found

    def _matches(self, one: _Bound, write: Write) -> bool:
        rules = (one.policy["spec"].get("matchConstraints") or {}).get("resourceRules") or ()
        if not any(takes(rule, write) for rule in rules):
            return False
        narrowing = (one.binding["spec"].get("matchResources") or {}).get("resourceRules")
        if narrowing and not any(takes(rule, write) for rule in narrowing):
            return False
        if not one.objects.matches(labels_of(write.obj or write.old or {})):
            return False
        if not write.resource.namespaced:
            return True
        namespace = self._store.get("namespaces", "", write.namespace)
        return one.namespaces.matches(namespace.labels if namespace else {})

    def _ask(self, one: _Bound, write: Write) -> None:
        context = context_of(write)
        for validation, program in one.checks:
            why = _broken(validation, program, context)
            if why is None:
                continue
            if (
                isinstance(why, _DefectError)
                and one.policy["spec"].get("failurePolicy") == "Ignore"
            ):
                continue
            self._refuse(one, write, validation, str(why))

    def _refuse(self, one: _Bound, write: Write, validation: Mapping[str, Any], why: str) -> None:
        names = one.policy["metadata"]["name"], one.binding["metadata"]["name"]
        who = f"ValidatingAdmissionPolicy '{names[0]}' with binding '{names[1]}'"
        text = f"{who} denied request: {why}"
        actions = one.binding["spec"].get("validationActions") or ()
        if "Warn" in actions:
            write.warn(f"Validation failed for {who}: {why}")
        if "Deny" not in actions:
            return
        error = errors.forbidden(write.resource.group, write.resource.plural, write.name, text)
        error.reason = validation.get("reason") or "Invalid"
        error.code = _CODES.get(error.reason, 422)
        error.details["causes"] = [{"message": text}]
        raise error


class _DefectError(Exception):
    """An expression that cannot be evaluated."""


def compiled(expression: str) -> Program | str:
    """Return a program, or why the expression does not compile."""
    import cel  # noqa: PLC0415 - a fifth of a second, for few clusters

    try:
        program: Program = cel.compile(expression)
    except ValueError as error:
        return f"expression '{expression}' does not compile: {error}"
    return program


def _broken(
    validation: Mapping[str, Any], program: Program | str, context: dict[str, Any]
) -> str | _DefectError | None:
    """Return why a validation does not hold; None when it does."""
    expression = validation["expression"]
    if isinstance(program, str):
        return _DefectError(program)
    try:
        if program.execute(context) is True:
            return None
    except (ValueError, KeyError, TypeError, RuntimeError) as error:
        return _DefectError(f"expression '{expression}' resulted in error: {error}")
    return validation.get("message") or f"failed expression: {expression.strip()}"


def takes(rule: Mapping[str, Any], write: Write) -> bool:
    """Tell whether a rule with operations names the resource and the operation of a write."""
    resource = write.resource
    what = f"{resource.plural}/{write.subresource}" if write.subresource else resource.plural
    wanted = {what, "*/*"} | (
        {f"{resource.plural}/*", f"*/{write.subresource}"} if write.subresource else {"*"}
    )
    return (
        _has(rule, "operations", {write.operation})
        and _has(rule, "apiGroups", {resource.group})
        and _has(rule, "apiVersions", {resource.version})
        and bool(wanted & set(rule.get("resources") or ()))
        and (not rule.get("resourceNames") or write.name in rule["resourceNames"])
    )


def _has(rule: Mapping[str, Any], field: str, values: set[str]) -> bool:
    return bool((values | {"*"}) & set(rule.get(field) or ()))


def _both(matching: Mapping[str, Any], narrowing: Mapping[str, Any], field: str) -> LabelSelector:
    """Return a selector that takes what both take."""
    first, second = (selector_of(one.get(field) or {}) for one in (matching, narrowing))
    return LabelSelector((*first.requirements, *second.requirements))


def context_of(write: Write) -> dict[str, Any]:
    """Return the variables of CEL expressions about a write."""
    resource = write.resource
    return {
        "object": write.obj,
        "oldObject": write.old,
        "request": {
            "operation": write.operation,
            "name": write.name,
            "namespace": write.namespace,
            "subResource": write.subresource,
            "resource": {
                "group": resource.group,
                "version": resource.version,
                "resource": resource.plural,
            },
            "userInfo": {
                "username": write.user.name,
                "groups": list(write.user.groups),
                "uid": write.user.uid,
            },
        },
    }
