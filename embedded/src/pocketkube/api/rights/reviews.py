"""Questions about users: who am I, what may I, whose token is this.

In: review objects as they are posted. Out: the same with their status, or ApiError. Nothing is
stored. Source of checks and messages: answers of a real API server 1.36.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

from pocketkube.api.rights.rbac import MASTERS, Authorizer
from pocketkube.api.rights.tokens import Tokens
from pocketkube.api.writing import User
from pocketkube.causes import invalid
from pocketkube.errors import Cause, bad_request
from pocketkube.errors import invalid as invalid_object
from pocketkube.objects import Object, meta, rfc3339

_AUTHENTICATION = "authentication.k8s.io"
_AUTHORIZATION = "authorization.k8s.io"
_EVERYTHING = {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}
_EVERY_PATH = {"verbs": ["*"], "nonResourceURLs": ["*"]}


class Asked(NamedTuple):
    """One review that was posted: by whom, what, and to which namespace's path."""

    authorizer: Authorizer
    tokens: Tokens
    user: User
    review: Object
    namespace: str

    @property
    def spec(self) -> Mapping[str, Any]:
        """Return the review's spec."""
        return self.review.get("spec") or {}


def _access_review(asked: Asked, *, kind: str) -> Object:
    """Answer a review of access; one that begins with Self is about who asks."""
    spec, causes = asked.spec, list[Cause]()
    attributes = ("resourceAttributes", "nonResourceAttributes")
    if sum(spec.get(one) is not None for one in attributes) != 1:
        why = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
        causes.append(invalid("spec.resourceAttributes", None, why))
    user = asked.user
    if not kind.startswith("Self"):
        user = User(spec.get("user", ""), tuple(spec.get("groups") or ()), spec.get("uid", ""))
        if not (user.name or user.groups):
            why = "at least one of user or group must be specified"
            causes.append(invalid("spec.user", "", why))
    if causes:  # the real server names no kind here
        raise invalid_object(_AUTHORIZATION, "", "", causes)
    where = {"namespace": asked.namespace} if asked.namespace else {}
    return {
        "kind": kind,
        "apiVersion": f"{_AUTHORIZATION}/v1",
        "metadata": meta(asked.review) | where,
        "spec": spec,
        "status": _access(asked, user),
    }


def _self_subject_rules_review(asked: Asked) -> Object:
    namespace = asked.spec.get("namespace", "")
    if not namespace:
        raise bad_request("no namespace on request")
    resources, paths = rules_for(asked.authorizer, asked.user, namespace)
    return {
        "kind": "SelfSubjectRulesReview",
        "apiVersion": f"{_AUTHORIZATION}/v1",
        "metadata": {},
        "spec": {},
        "status": {"resourceRules": resources, "nonResourceRules": paths, "incomplete": False},
    }


def rules_for(
    authorizer: Authorizer, user: User, namespace: str
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return the rules on resources and those on other paths that a user has in a namespace."""
    resources: list[dict[str, Any]] = []
    paths: list[dict[str, Any]] = []
    for rule, _source in authorizer.granted(user, namespace):
        if rule.get("resources"):
            fields = ("verbs", "apiGroups", "resources", "resourceNames")
            resources.append({field: rule[field] for field in fields if rule.get(field)})
        if rule.get("nonResourceURLs"):
            paths.append({field: rule[field] for field in ("verbs", "nonResourceURLs")})
    if MASTERS in user.groups:  # also without any binding
        resources += [] if _EVERYTHING in resources else [_EVERYTHING]
        paths += [] if _EVERY_PATH in paths else [_EVERY_PATH]
    return resources, paths


def _self_subject_review(asked: Asked) -> Object:
    return {
        "kind": "SelfSubjectReview",
        "apiVersion": f"{_AUTHENTICATION}/v1",
        "metadata": {"creationTimestamp": rfc3339(asked.tokens.now_s())},
        "status": {"userInfo": _user_info(asked.user)},
    }


def _token_review(asked: Asked) -> Object:
    spec = asked.spec
    if not spec.get("token"):
        raise bad_request("token is required for TokenReview in authentication")
    found = asked.tokens.reviewed(spec["token"], spec.get("audiences") or [])
    if isinstance(found, str):
        status: dict[str, Any] = {"user": {}, "error": found}
    else:
        user, audiences = found
        status = {"authenticated": True, "user": _user_info(user), "audiences": audiences}
    return {
        "kind": "TokenReview",
        "apiVersion": f"{_AUTHENTICATION}/v1",
        "metadata": meta(asked.review),
        "spec": spec,
        "status": status,
    }


_ANSWERS: Mapping[str, Callable[[Asked], Object]] = {
    **{
        f"{kind.lower()}s.{_AUTHORIZATION}": partial(_access_review, kind=kind)
        for kind in ("SelfSubjectAccessReview", "SubjectAccessReview", "LocalSubjectAccessReview")
    },
    f"selfsubjectrulesreviews.{_AUTHORIZATION}": _self_subject_rules_review,
    f"selfsubjectreviews.{_AUTHENTICATION}": _self_subject_review,
    f"tokenreviews.{_AUTHENTICATION}": _token_review,
}
REVIEWS = frozenset(_ANSWERS)
"""The buckets of resources that are answered by ``reviewed``."""


def reviewed(bucket: str, asked: Asked) -> Object:
    """Answer a review: the same object with its status. Raises ApiError (400, 422)."""
    return _ANSWERS[bucket](asked)


def _user_info(user: User) -> dict[str, Any]:
    info = {"username": user.name, "uid": user.uid, "groups": list(user.groups)}
    return {key: value for key, value in info.items() if value}


def _access(asked: Asked, user: User) -> dict[str, Any]:
    authorizer, spec = asked.authorizer, asked.spec
    on = spec.get("resourceAttributes")
    if on is not None:
        reason = authorizer.reason(
            user,
            on.get("verb", ""),
            on.get("group", ""),
            on.get("resource", ""),
            on.get("subresource", ""),
            on.get("namespace", ""),
            on.get("name", ""),
        )
    else:
        on = spec["nonResourceAttributes"]
        reason = authorizer.reason_path(user, on.get("verb", ""), on.get("path", ""))
    if reason is None:
        return {"allowed": False}
    return {"allowed": True, "reason": reason} if reason else {"allowed": True}
