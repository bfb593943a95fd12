"""Who may do what: roles and bindings of the store, as RBAC reads them.

In: users and what they want. Out: yes or no, and the sentence of a refusal. Called by the HTTP
server for each request, and by ``reviews``. Source of the rules: Kubernetes' documentation of RBAC
and answers of a real API server 1.36. Not here: whether the author of a role or binding has himself
what it grants (privilege escalation); the embedded cluster trusts them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from pocketkube.api.writing import User
from pocketkube.causes import shown
from pocketkube.matching.selectors import selector_of
from pocketkube.objects import Object, labels_of, name_of
from pocketkube.store.store import Event, Store

MASTERS = "system:masters"
"""Whoever is in this group may do everything, whatever the roles say."""

_GROUP = "rbac.authorization.k8s.io"
ROLES = f"roles.{_GROUP}"
CLUSTER_ROLES = f"clusterroles.{_GROUP}"
ROLE_BINDINGS = f"rolebindings.{_GROUP}"
CLUSTER_ROLE_BINDINGS = f"clusterrolebindings.{_GROUP}"

_ANY_NAME = ""  # no object has it, so that it can stand for all of them

Rule = Mapping[str, Any]
"""A PolicyRule."""


class Authorizer:
    """Decides by the store's newest roles and bindings."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._rules_of: dict[tuple[User, str], list[Rule]] = {}
        self._names: dict[tuple[User, str, str, str, str, str], set[str]] = {}
        for bucket in (ROLES, CLUSTER_ROLES, ROLE_BINDINGS, CLUSTER_ROLE_BINDINGS):
            store.watch(bucket, self._forget)

    def _forget(self, _event: Event | None = None) -> None:
        self._rules_of.clear()
        self._names.clear()

    def allowed(
        self,
        user: User,
        verb: str,
        group: str,
        resource: str,
        subresource: str = "",
        namespace: str = "",
        name: str = "",
    ) -> bool:
        """Tell whether the user may; ``resource`` is the plural, ``namespace`` "" the cluster.

        For requests on a namespace itself, ``namespace`` is its name too, as upstream.
        """
        if MASTERS in user.groups:
            return True
        key = (user, verb, group, resource, subresource, namespace)
        names = self._names.get(key)
        if names is None:
            if len(self._names) > 100_000:  # users come from tokens: do not grow for ever
                self._forget()
            names = self._names[key] = {
                allowed_name
                for rule in self.granted(user, namespace)
                if _allows(rule, verb, group, resource, subresource)
                for allowed_name in rule.get("resourceNames") or (_ANY_NAME,)
            }
        return _ANY_NAME in names or name in names

    def allowed_path(self, user: User, verb: str, path: str) -> bool:
        """Tell whether the user may read a path that is no resource; ``verb`` is get, post, ..."""
        return MASTERS in user.groups or any(
            _has(rule, "verbs", verb) and _covers(rule.get("nonResourceURLs") or (), path)
            for rule in self.granted(user, "")
        )

    def granted(self, user: User, namespace: str) -> list[Rule]:
        """Return every rule that the user has in a namespace, the cluster's rules first."""
        rules = self._rules_of.get((user, namespace))
        if rules is None:
            bindings = [*self._store.entries(CLUSTER_ROLE_BINDINGS)]
            if namespace:
                bindings += self._store.entries(ROLE_BINDINGS, namespace)
            rules = self._rules_of[user, namespace] = [
                rule
                for binding in bindings
                for rule in self._of_binding(user, binding.object, binding.namespace)
            ]
        return rules

    def _of_binding(self, user: User, binding: Object, namespace: str) -> list[Rule]:
        if not any(_is(user, subject, namespace) for subject in binding.get("subjects") or ()):
            return []
        role = binding.get("roleRef") or {}
        return self._rules(role.get("kind", ""), namespace, role.get("name", ""))

    def _rules(self, kind: str, namespace: str, name: str) -> list[Rule]:
        if kind == "Role":
            entry = self._store.get(ROLES, namespace, name) if namespace else None
            return [] if entry is None else entry.object.get("rules") or []
        entry = self._store.get(CLUSTER_ROLES, "", name) if kind == "ClusterRole" else None
        if entry is None:
            return []
        role = entry.object
        if role.get("aggregationRule"):
            return aggregated_rules(role, (e.object for e in self._store.entries(CLUSTER_ROLES)))
        return role.get("rules") or []


def aggregated_rules(role: Object, roles: Iterable[Object]) -> list[Rule]:
    """Return the rules that a ClusterRole collects by its aggregationRule, each of them once.

    On a real cluster a controller writes them into the role's ``rules``.
    """
    selectors = role["aggregationRule"].get("clusterRoleSelectors") or []
    wanted = [selector_of(selector) for selector in selectors]
    found: list[Rule] = []
    for other in roles:
        if name_of(other) == name_of(role):
            continue
        if any(selector.matches(labels_of(other)) for selector in wanted):
            found += [rule for rule in other.get("rules") or [] if rule not in found]
    return found


def _is(user: User, subject: Mapping[str, Any], namespace: str) -> bool:
    name = subject.get("name", "")
    match subject.get("kind"):
        case "User":
            return bool(user.name == name)
        case "Group":
            return name in user.groups
        case "ServiceAccount":
            space = subject.get("namespace") or namespace
            return bool(space) and user.name == f"system:serviceaccount:{space}:{name}"
    return False


def _allows(
    rule: Mapping[str, Any], verb: str, group: str, resource: str, subresource: str
) -> bool:
    if not (_has(rule, "verbs", verb) and _has(rule, "apiGroups", group)):
        return False
    resources = rule.get("resources") or ()
    if not subresource:
        return "*" in resources or resource in resources
    wanted = ("*", f"{resource}/{subresource}", f"*/{subresource}")
    return any(one in resources for one in wanted)


def _has(rule: Mapping[str, Any], field: str, value: str) -> bool:
    values = rule.get(field) or ()
    return value in values or "*" in values


def _covers(patterns: Iterable[str], path: str) -> bool:
    return any(
        one in ("*", path) or (one.endswith("*") and path.startswith(one.rstrip("*")))
        for one in patterns
    )


def refusal(
    user: User, verb: str, group: str, resource: str, subresource: str = "", namespace: str = ""
) -> str:
    """Return the sentence of a request that ``allowed`` says no to."""
    what = f"{resource}/{subresource}" if subresource else resource
    where = f"in the namespace {shown(namespace)}" if namespace else "at the cluster scope"
    return (
        f"User {shown(user.name)} cannot {verb} resource {shown(what)} in API group "
        f"{shown(group)} {where}"
    )


def refusal_of_path(user: User, verb: str, path: str) -> str:
    """Return the sentence of a request that ``allowed_path`` says no to."""
    return f"User {shown(user.name)} cannot {verb} path {shown(path)}"
