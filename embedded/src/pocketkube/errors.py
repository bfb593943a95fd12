"""What the API refuses, as the Status objects that a real API server answers.

Source of codes and reasons: k8s.io/apimachinery ``pkg/api/errors`` and ``meta/v1`` of 1.36.
"""

from __future__ import annotations

from typing import Any, NamedTuple


class Cause(NamedTuple):
    """One field that is wrong."""

    reason: str  # such as FieldValueRequired
    message: str  # such as "Required value: name or generateName is required"
    field: str  # such as spec.containers[0].name


class ApiError(Exception):
    """A request is refused; ``status()`` is the body of the answer."""

    def __init__(
        self, code: int, reason: str, message: str, details: dict[str, Any] | None = None
    ) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.message = message
        self.details = details or {}

    def status(self) -> dict[str, Any]:
        """Return the Status object."""
        status: dict[str, Any] = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
        }
        if self.reason:
            status["reason"] = self.reason
        if self.details:
            status["details"] = self.details
        return {**status, "code": self.code}


def qualified(plural: str, group: str) -> str:
    """Return ``deployments.apps``, or ``pods`` in the core group."""
    return f"{plural}.{group}" if group else plural


def bad_request(message: str) -> ApiError:
    """400: the request cannot be understood."""
    return ApiError(400, "BadRequest", message)


def unauthorized() -> ApiError:
    """401: no token, or one that is not known."""
    return ApiError(401, "Unauthorized", "Unauthorized")


def forbidden(group: str, plural: str, name: str, why: str) -> ApiError:
    """403: the user may not, or admission says no."""
    what = qualified(plural, group)
    message = f'{what} "{name}" is forbidden: {why}' if name else f"{what} is forbidden: {why}"
    return ApiError(403, "Forbidden", message, _details(group, plural, name))


def not_found(group: str, plural: str, name: str) -> ApiError:
    """404: there is no such object."""
    message = f'{qualified(plural, group)} "{name}" not found'
    return ApiError(404, "NotFound", message, _details(group, plural, name))


def no_such_path() -> ApiError:
    """404: there is no such resource."""
    return ApiError(404, "NotFound", "the server could not find the requested resource")


def no_such_method() -> ApiError:
    """405: the path is served, but not for this method."""
    text = "the server does not allow this method on the requested resource"
    return ApiError(405, "MethodNotAllowed", text)


def method_not_allowed(group: str, plural: str, method: str) -> ApiError:
    """405: the resource has no such verb."""
    what = qualified(plural, group)
    message = f"{method} is not supported on resources of kind {what!r}".replace("'", '"')
    return ApiError(405, "MethodNotAllowed", message, _details(group, plural, ""))


def already_exists(
    group: str, plural: str, name: str, *, deleting: bool = False, generated: bool = False
) -> ApiError:
    """409: there is one of that name, or there is still, or all that were drawn are taken."""
    message = f'{qualified(plural, group)} "{name}" already exists'
    if deleting:
        message = f"object is being deleted: {message}"
    details = _details(group, plural, name)
    if generated:
        message += ", the server was not able to generate a unique name for the object"
        details["retryAfterSeconds"] = 1
    return ApiError(409, "AlreadyExists", message, details)


def conflict(group: str, plural: str, name: str, why: str) -> ApiError:
    """409: somebody else was faster, or the object's state forbids it."""
    message = f'Operation cannot be fulfilled on {qualified(plural, group)} "{name}": {why}'
    return ApiError(409, "Conflict", message, _details(group, plural, name))


MODIFIED = (
    "the object has been modified; please apply your changes to the latest version and try again"
)


def too_large_revision(revision: int, current: int) -> ApiError:
    """504: the revision that a list or watch shall not be older than is still to come."""
    message = f"Timeout: Too large resource version: {revision}, current: {current}"
    cause = {"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}
    return ApiError(504, "Timeout", message, {"causes": [cause], "retryAfterSeconds": 1})


def expired(message: str) -> ApiError:
    """410: the resourceVersion, or the continue token, is too old."""
    return ApiError(410, "Expired", message)


def unsupported_media_type(supported: list[str]) -> ApiError:
    """415: a body of a type that this endpoint does not read."""
    message = (
        f"the body of the request was in an unknown format - accepted media types include: "
        f"{', '.join(supported)}"
    )
    return ApiError(415, "UnsupportedMediaType", message)


def invalid(group: str, kind: str, name: str, causes: list[Cause]) -> ApiError:
    """422: fields are wrong; each is one cause."""
    parts = [f"{cause.field}: {cause.message}" for cause in causes]
    text = parts[0] if len(parts) == 1 else f"[{', '.join(parts)}]"
    what = f"{kind}.{group}" if group else kind
    details: dict[str, Any] = {"name": name, "group": group, "kind": kind}
    details["causes"] = [cause._asdict() for cause in causes]
    details = {key: value for key, value in details.items() if value}
    return ApiError(422, "Invalid", f'{what} "{name}" is invalid: {text}', details)


def too_many_requests(message: str, retry_after_s: int) -> ApiError:
    """429: not now, such as an eviction that a PodDisruptionBudget forbids."""
    return ApiError(429, "TooManyRequests", message, {"retryAfterSeconds": retry_after_s})


def _details(group: str, plural: str, name: str) -> dict[str, Any]:
    details = {"name": name, "group": group, "kind": plural}
    return {key: value for key, value in details.items() if value}
