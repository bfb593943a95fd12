"""What can go wrong between us and the API server, as types. In: status and body. Out: an error.

Raised by ``client`` and ``reflector``; caught by everyone who calls them. No other exception of the
network or of HTTP leaves ``shell.kube``: the cause is chained, never shown instead.
"""

import msgspec

_MESSAGE_CHARS_MAX = 2000
_NAMESPACE_GOING = "NamespaceTerminating"
_RETRY_AFTER_S_MAX = 60.0
"""Bounds of what a server, or an admission webhook behind it, makes us keep and wait."""


STATUSES = ("401", "403", "404", "409", "410", "429", "4xx", "5xx", "other", "unreachable")
"""What errors are counted by: never a number that a server made up."""


def status_class(status: int) -> str:
    """Return the one of ``STATUSES`` for an HTTP status; 0 means that no answer came."""
    if str(status) in STATUSES:
        return str(status)
    return {0: "unreachable", 4: "4xx", 5: "5xx"}.get(status // 100, "other")


class ApiError(Exception):
    """The API server refused, or could not be reached (status 0).

    ``reason`` is the machine-readable one of Kubernetes' Status object, such as "AlreadyExists";
    ``retry_after_s`` is what the server asked us to wait, if it asked.
    """

    is_namespace_going = False
    """Whether it was refused because the object's namespace is being deleted."""
    names_object = False
    """Whether the answer names its object. A 404 that does not may be of a proxy which knows no
    path at all while its API server is away: it does not say that the object is gone."""
    of_kind = ""
    """The plural of the kind that the answer is about, such as "namespaces"; "": of none."""

    def __init__(
        self, status: int, reason: str, message: str, retry_after_s: float | None = None
    ) -> None:
        super().__init__(f"{status} {reason}: {message}" if status else message)
        self.status = status
        self.reason = reason
        self.message = message
        self.retry_after_s = retry_after_s


class NotFound(ApiError):  # noqa: N818  named as Kubernetes names its reasons
    """404: no such object, or no such resource."""


class Conflict(ApiError):  # noqa: N818
    """409: the object changed meanwhile, exists already, or forbids this step."""


class Gone(ApiError):  # noqa: N818
    """410: the resource version or the continue token is too old."""


class Forbidden(ApiError):  # noqa: N818
    """403: RBAC, admission or a quota said no."""


class TooManyRequests(ApiError):  # noqa: N818
    """429: try again later."""


class ServerError(ApiError):
    """5xx: the server failed; whether the request was carried out is unknown."""


class TooLarge(ApiError):  # noqa: N818
    """The answer has more bytes than we take; it was not read to its end."""

    def __init__(self, message: str) -> None:
        super().__init__(200, "TooLarge", message)


class Unreachable(ApiError):  # noqa: N818
    """No complete answer came. ``maybe_processed`` is False only if nothing was ever sent."""

    def __init__(self, message: str, *, maybe_processed: bool = True) -> None:
        super().__init__(0, "Unreachable", message)
        self.maybe_processed = maybe_processed


def not_sent() -> Unreachable:
    """Return the error of a write whose author holds the lease no more."""
    return Unreachable("it was not sent: who asked for it may write no more", maybe_processed=False)


class _Cause(msgspec.Struct):
    reason: str | None = None


class _Details(msgspec.Struct):
    name: str | None = None
    kind: str | None = None
    retryAfterSeconds: float | None = None  # noqa: N815  the API's own name
    causes: list[_Cause] | None = None


class _Status(msgspec.Struct):
    reason: str | None = None
    message: str | None = None
    code: int | None = None
    details: _Details | None = None


_STATUS_DECODER = msgspec.json.Decoder(_Status)
_TYPE_BY_STATUS: dict[int, type[ApiError]] = {
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    410: Gone,
    429: TooManyRequests,
}


def error_from_response(
    status: int, body: bytes | msgspec.Raw, retry_after: str | bytes | None = None
) -> ApiError:
    """Return the error for an HTTP answer; its body is a Status object, or any text of a proxy.

    ``retry_after`` is the header of that name; without it ``details.retryAfterSeconds`` counts.
    """
    try:
        decoded = _STATUS_DECODER.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        text = bytes(body)[: 4 * _MESSAGE_CHARS_MAX].decode("utf-8", "replace").strip()
        decoded = _Status(message=text)
    wait_s = _parse_retry_after(retry_after)
    if wait_s is None and decoded.details is not None:
        wait_s = decoded.details.retryAfterSeconds
    is_servers = status >= 500 or status < 300
    kind = _TYPE_BY_STATUS.get(status, ServerError if is_servers else ApiError)
    message = _clipped(decoded.message or "no message")
    if status < 300:
        message = f"the answer is no object of the API: {message}"
    error = kind(status, (decoded.reason or "Unknown")[:100], message, _bounded(wait_s))
    causes = (decoded.details.causes if decoded.details else None) or ()
    error.is_namespace_going = any(one.reason == _NAMESPACE_GOING for one in causes)
    error.names_object = bool(decoded.details and decoded.details.name)
    error.of_kind = (decoded.details.kind if decoded.details else None) or ""
    return error


def error_from_event(status_object: msgspec.Raw) -> ApiError:
    """Return the error that an ERROR event of a watch carries (its object is a Status)."""
    try:
        code = _STATUS_DECODER.decode(status_object).code
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        code = None
    return error_from_response(code or 500, status_object)


def _parse_retry_after(value: str | bytes | None) -> float | None:
    """Read seconds; the form with a date is not used by Kubernetes and counts as absent."""
    if value is None or not value.isascii() or not value.isdigit():
        return None
    return float(value[:10])


def _bounded(wait_s: float | None) -> float | None:
    return None if wait_s is None else min(max(wait_s, 0.0), _RETRY_AFTER_S_MAX)


def _clipped(message: str) -> str:
    whole = len(message) <= _MESSAGE_CHARS_MAX
    return message if whole else f"{message[: _MESSAGE_CHARS_MAX - 4]} ..."


def is_gone(error: ApiError) -> bool:
    """Tell whether the API server says that this object does not exist."""
    return isinstance(error, NotFound) and error.names_object


def is_object(body: bytes) -> bool:
    """Tell whether this is what an API server says of a write, which a proxy's page is not."""
    return body[:1] == b"{" and body.rstrip()[-1:] == b"}"
