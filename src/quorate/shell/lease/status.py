"""Why this replica does not hold the lease. In: the error of a try. Out: its kind and a hint.

``elector`` writes a ``LeaseStatus``; ``leadership`` and the health pages read it, also from another
thread. So each attribute is one immutable value. Each new kind of failure is logged once.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import Final, Literal

import msgspec
import structlog

from quorate.shell.kube.errors import (
    ApiError,
    Conflict,
    Forbidden,
    NotFound,
    ServerError,
    TooManyRequests,
    Unreachable,
)

log = structlog.get_logger(__name__)

Verb = Literal["get", "create", "update"]

_TEXT_CHARS_MAX: Final = 500
_GRANTED_NAME: Final = "quorate"  # the one lease that the shipped manifests give rights to


class LeaseError(StrEnum):
    """Kinds of failed tries to take or renew the lease. Also the values of a metric's label."""

    NAMESPACE_MISSING = "NamespaceMissing"
    FORBIDDEN = "Forbidden"
    UNAUTHORIZED = "Unauthorized"
    NOT_FOUND = "NotFound"
    CONFLICT = "Conflict"
    THROTTLED = "Throttled"
    SERVER_ERROR = "ServerError"
    INVALID_ANSWER = "InvalidAnswer"
    REFUSED = "Refused"
    UNREACHABLE = "Unreachable"
    TIMEOUT = "Timeout"
    CORE_STUCK = "CoreStuck"


_PEOPLE_MUST_ACT: Final = {
    LeaseError.NAMESPACE_MISSING,
    LeaseError.FORBIDDEN,
    LeaseError.UNAUTHORIZED,
    LeaseError.REFUSED,
}
_KINDS: Final[dict[type[ApiError], LeaseError]] = {
    Unreachable: LeaseError.UNREACHABLE,
    Forbidden: LeaseError.FORBIDDEN,
    NotFound: LeaseError.NOT_FOUND,
    Conflict: LeaseError.CONFLICT,
    TooManyRequests: LeaseError.THROTTLED,
    ServerError: LeaseError.SERVER_ERROR,
}


class LeaseFailure(msgspec.Struct, frozen=True):
    """Why the latest try failed. ``hint`` is what a person can do; empty if it passes by itself."""

    kind: LeaseError
    verb: Verb
    problem: str
    hint: str = ""

    def __str__(self) -> str:
        return f"{self.problem}; {self.hint}" if self.hint else self.problem


def failure_of(error: ApiError, verb: Verb, namespace: str, name: str) -> LeaseFailure:
    """Return the failure for an error of the API, met when we tried to ``verb`` the Lease."""
    kind = _kind_of(error, verb)
    problem = f"cannot {verb} lease {namespace}/{name}: {_one_line(str(error))}"
    return LeaseFailure(kind, verb, problem, _hint(kind, verb, namespace, name))


def timed_out(limit_s: float, verb: Verb, namespace: str, name: str) -> LeaseFailure:
    """Return the failure for a try without an answer within ``limit_s``."""
    problem = f"cannot {verb} lease {namespace}/{name}: no answer within {limit_s:.3g} s"
    return LeaseFailure(
        LeaseError.TIMEOUT, verb, problem, _hint(LeaseError.TIMEOUT, verb, namespace, name)
    )


def core_is_stuck(verb: Verb, stuck_s: float) -> LeaseFailure:
    """Return the failure for a core that has not turned for ``stuck_s``."""
    problem = f"the core has not turned for {stuck_s:.0f} s, so the lease is not renewed"
    return LeaseFailure(LeaseError.CORE_STUCK, verb, problem, "the kubelet restarts it; report it")


class LeaseStatus:
    """Who leads, and what keeps this replica from leading."""

    def __init__(self, identity: str, lease: str) -> None:
        """``lease`` is its namespace and name."""
        self._identity = identity
        self._lease = lease
        self.on_error: Callable[[str], object] = lambda kind: None
        """Gets the kind of each failed try."""
        self._logged: tuple[LeaseError, Verb] | None = None
        self._logged_holder = ""
        self.holder = ""
        """Who leads, as far as we know; it may be ourselves."""
        self.failure: LeaseFailure | None = None
        """Why the latest try failed; None if it did not."""
        self.why_lost = ""
        self._cause: LeaseFailure | None = None

    def failed(self, failure: LeaseFailure) -> None:
        """Note a failed try. Log it unless the try before failed in the same way."""
        self.on_error(str(failure.kind))
        self.failure = failure
        if self._cause is None or failure.kind is not LeaseError.TIMEOUT:
            self._cause = failure  # a timeout says less than the error before it
        kind_and_verb = failure.kind, failure.verb
        # A conflict is no problem: somebody else wrote, and the next try reads first.
        if kind_and_verb == self._logged or failure.kind is LeaseError.CONFLICT:
            return
        self._logged = kind_and_verb
        say = log.error if failure.kind in _PEOPLE_MUST_ACT else log.warning
        say(
            "the lease was not taken or renewed",
            kind=str(failure.kind),
            problem=failure.problem,
            hint=failure.hint,
        )

    def worked(self) -> None:
        """Note that a try got an answer, whoever leads."""
        self.failure = self._cause = None
        if self._logged is not None:
            self._logged = None
            log.info("the lease can be taken and renewed again")

    def saw(self, holder: str) -> None:
        """Note who holds the lease now; nothing if nobody does."""
        self.holder = holder
        if holder and holder not in (self._logged_holder, self._identity):
            log.info("standing by", leader=holder, lease=self._lease)
        self._logged_holder = holder

    def lost(self, after_s: float) -> None:
        """Note that the lease was lost, ``after_s`` after the last renewal, and say why."""
        failure = self._cause
        if self.holder and self.holder != self._identity:
            self.why_lost = f"{self.holder} has taken it"
        elif failure is None:
            self.why_lost = f"it was not renewed for {after_s:.3g} s"
        else:
            self.why_lost = f"it was not renewed for {after_s:.3g} s: {failure}"

    def unready_reason(self, *, leads: bool) -> str | None:
        """Return why this replica neither leads nor stands by; None if it does."""
        if leads:
            return None
        if self.failure is not None and self.failure.kind is not LeaseError.CONFLICT:
            return f"not leading: {self.failure}"
        if not self.holder:
            return f"not leading: lease {self._lease} was not read yet"
        return None

    def note(self, *, leads: bool) -> str:
        """Return who leads, for a replica that stands by; else nothing."""
        return f"standing by: {self.holder} leads" if not leads and self.holder else ""


def _kind_of(error: ApiError, verb: Verb) -> LeaseError:
    is_missing = isinstance(error, NotFound) and verb == "create" and error.of_kind == "namespaces"
    if is_missing or error.is_namespace_going:
        return LeaseError.NAMESPACE_MISSING
    if error.status == 200:
        return LeaseError.INVALID_ANSWER
    if error.status == 401:
        return LeaseError.UNAUTHORIZED
    return next(
        (kind for cls, kind in _KINDS.items() if isinstance(error, cls)), LeaseError.REFUSED
    )


def _hint(kind: LeaseError, verb: Verb, namespace: str, name: str) -> str:
    rights = f"quorate manifests --namespace {namespace} --only rbac | kubectl apply -f -"
    rights = f": {rights}" if name == _GRANTED_NAME else ""
    match kind:
        case LeaseError.NAMESPACE_MISSING:
            return f"create the namespace and its rights{rights}"
        case LeaseError.FORBIDDEN:
            which = f"{verb!r} on leases of coordination.k8s.io in namespace {namespace}"
            return f"grant {which}{rights}"
        case LeaseError.UNAUTHORIZED:
            return "give quorate a valid token or client certificate"
        case LeaseError.UNREACHABLE | LeaseError.TIMEOUT:
            return "check the API server and the network to it"
        case LeaseError.INVALID_ANSWER:
            return "see what answers in the API server's place"
    return ""


def _one_line(text: str) -> str:
    """Return a server's text as one short line without control characters."""
    line = " ".join(text.split())[:_TEXT_CHARS_MAX]
    return line if line.isprintable() else ascii(line)[1:-1]
