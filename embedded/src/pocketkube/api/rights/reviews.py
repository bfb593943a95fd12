"""Questions about users: who am I, and what may I or another do.

In: review objects as they are posted. Out: the same with their status, or ApiError. Nothing is
stored. Source of checks and messages: answers of a real API server 1.36.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

from pocketkube.api.rights.rbac import Authorizer
from pocketkube.api.rights.tokens import Tokens
from pocketkube.api.writing import User
from pocketkube.causes import invalid
from pocketkube.errors import invalid as invalid_object
from pocketkube.objects import Object, meta, rfc3339

_AUTHENTICATION = "authentication.k8s.io"
_AUTHORIZATION = "authorization.k8s.io"


class Asked(NamedTuple):
    """One review that was posted: by whom, and what."""

    authorizer: Authorizer
    tokens: Tokens
    user: User
    review: Object

    @property
    def spec(self) -> Mapping[str, Any]:
        """Return the review's spec."""
        return self.review.get("spec") or {}


def _access_review(asked: Asked, *, kind: str) -> Object:
    """Answer a review of access; one that begins with Self is about who asks."""
    spec, user = asked.spec, asked.user
    attributes = ("resourceAttributes", "nonResourceAttributes")
    if sum(spec.get(field) is not None for field in attributes) != 1:
        why = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
        cause = invalid("spec.resourceAttributes", None, why)
        raise invalid_object(_AUTHORIZATION, "", "", [cause])  # the real server names no kind here
    if not kind.startswith("Self"):
        user = User(spec.get("user", ""), tuple(spec.get("groups") or ()), spec.get("uid", ""))
    return {
        "kind": kind,
        "apiVersion": f"{_AUTHORIZATION}/v1",
        "metadata": meta(asked.review),
        "spec": spec,
        "status": {"allowed": _is_allowed(asked, user)},
    }


def _self_subject_review(asked: Asked) -> Object:
    return {
        "kind": "SelfSubjectReview",
        "apiVersion": f"{_AUTHENTICATION}/v1",
        "metadata": {"creationTimestamp": rfc3339(asked.tokens.now_s())},
        "status": {"userInfo": _user_info(asked.user)},
    }


_ANSWERS: Mapping[str, Callable[[Asked], Object]] = {
    **{
        f"{kind.lower()}s.{_AUTHORIZATION}": partial(_access_review, kind=kind)
        for kind in ("SelfSubjectAccessReview", "SubjectAccessReview")
    },
    f"selfsubjectreviews.{_AUTHENTICATION}": _self_subject_review,
}
REVIEWS = frozenset(_ANSWERS)
"""The buckets of resources that are answered by ``reviewed``."""


def reviewed(bucket: str, asked: Asked) -> Object:
    """Answer a review: the same object with its status. Raises ApiError (400, 422)."""
    return _ANSWERS[bucket](asked)


def _user_info(user: User) -> dict[str, Any]:
    info = {"username": user.name, "uid": user.uid, "groups": list(user.groups)}
    return {key: value for key, value in info.items() if value}


def _is_allowed(asked: Asked, user: User) -> bool:
    on = asked.spec.get("resourceAttributes")
    if on is None:
        on = asked.spec["nonResourceAttributes"]
        return asked.authorizer.allowed_path(user, on.get("verb", ""), on.get("path", ""))
    fields = ("verb", "group", "resource", "subresource", "namespace", "name")
    return asked.authorizer.allowed(user, *(on.get(field, "") for field in fields))
