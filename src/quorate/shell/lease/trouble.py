"""Why this replica does not hold the lease, in words. In: what a try met. Out: a kind and a remedy.

``Standing`` is written by ``leader`` and read by ``leadership`` and by the health pages, also from
another thread: each of its attributes is one immutable value. It says what is new in the log, once.
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
    """What may be wrong with a try to get or renew the lease: the values of a metric's label."""

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


class Trouble(msgspec.Struct, frozen=True):
    """Why the latest try failed. ``remedy`` is what somebody can do, empty if it passes."""

    kind: LeaseError
    verb: Verb
    problem: str
    remedy: str = ""

    def __str__(self) -> str:
        return f"{self.problem}; {self.remedy}" if self.remedy else self.problem


def trouble_of(error: ApiError, verb: Verb, namespace: str, name: str) -> Trouble:
    """Return what an error of the API means, met when we wanted to ``verb`` the Lease."""
    kind = _kind_of(error, verb)
    problem = f"cannot {verb} lease {namespace}/{name}: {_one_line(str(error))}"
    return Trouble(kind, verb, problem, _remedy(kind, verb, namespace, name))


def timed_out(limit_s: float, verb: Verb, namespace: str, name: str) -> Trouble:
    """Return what it means that no answer came within ``limit_s``."""
    problem = f"cannot {verb} lease {namespace}/{name}: no answer within {limit_s:.3g} s"
    return Trouble(
        LeaseError.TIMEOUT, verb, problem, _remedy(LeaseError.TIMEOUT, verb, namespace, name)
    )


def core_is_stuck(verb: Verb, stuck_s: float) -> Trouble:
    """Return what it means that the core has not turned for ``stuck_s``."""
    problem = f"the core has not turned for {stuck_s:.0f} s, so the lease is not renewed"
    return Trouble(LeaseError.CORE_STUCK, verb, problem, "the kubelet restarts it; report it")


class Standing:
    """What is known of one replica's place: who leads, and what keeps it from leading."""

    def __init__(self, identity: str, lease: str) -> None:
        """``lease`` is its namespace and name."""
        self._identity = identity
        self._lease = lease
        self.on_error: Callable[[str], object] = lambda kind: None
        """Gets the kind of each failed try."""
        self._told: tuple[LeaseError, Verb] | None = None
        self._told_holder = ""
        self.holder = ""
        """Who leads, as far as we know; it may be ourselves."""
        self.trouble: Trouble | None = None
        """Why the latest try failed; None if it did not."""
        self.why_lost = ""
        self._cause: Trouble | None = None

    def failed(self, trouble: Trouble) -> None:
        """Note a failed try; it is logged unless the one before failed in the same way."""
        self.on_error(str(trouble.kind))
        self.trouble = trouble
        if self._cause is None or trouble.kind is not LeaseError.TIMEOUT:
            self._cause = trouble  # our own patience, at its end, says less than the error before
        told = trouble.kind, trouble.verb
        # Two who write at once is no trouble: the next try looks first.
        if told == self._told or trouble.kind is LeaseError.CONFLICT:
            return
        self._told = told
        say = log.error if trouble.kind in _PEOPLE_MUST_ACT else log.warning
        say(
            "the lease was not taken or renewed",
            kind=str(trouble.kind),
            problem=trouble.problem,
            remedy=trouble.remedy,
        )

    def worked(self) -> None:
        """Note that a try had its answer, whoever leads."""
        self.trouble = self._cause = None
        if self._told is not None:
            self._told = None
            log.info("the lease can be taken and renewed again")

    def saw(self, holder: str) -> None:
        """Note who holds the lease now; nothing if nobody does."""
        self.holder = holder
        if holder and holder not in (self._told_holder, self._identity):
            log.info("standing by", leader=holder, lease=self._lease)
        self._told_holder = holder

    def lost(self, after_s: float) -> None:
        """Note that the lease was lost, ``after_s`` after the last renewal, and say why."""
        trouble = self._cause
        if self.holder and self.holder != self._identity:
            self.why_lost = f"{self.holder} has taken it"
        elif trouble is None:
            self.why_lost = f"it was not renewed for {after_s:.3g} s"
        else:
            self.why_lost = f"it was not renewed for {after_s:.3g} s: {trouble}"

    def unready_reason(self, *, leads: bool) -> str | None:
        """Return why this replica neither leads nor stands by; None if it does."""
        if leads:
            return None
        if self.trouble is not None and self.trouble.kind is not LeaseError.CONFLICT:
            return f"not leading: {self.trouble}"
        if not self.holder:
            return f"not leading: lease {self._lease} was not read yet"
        return None

    def note(self, *, leads: bool) -> str:
        """Return what else people may want to know of a replica that is ready."""
        return f"standing by: {self.holder} leads" if not leads and self.holder else ""


def _kind_of(error: ApiError, verb: Verb) -> LeaseError:
    is_missing = isinstance(error, NotFound) and verb == "create" and "namespaces" in error.message
    is_going = isinstance(error, Forbidden) and "being terminated" in error.message
    if is_missing or is_going:
        return LeaseError.NAMESPACE_MISSING
    if error.status == 200:
        return LeaseError.INVALID_ANSWER
    if error.status == 401:
        return LeaseError.UNAUTHORIZED
    return next(
        (kind for cls, kind in _KINDS.items() if isinstance(error, cls)), LeaseError.REFUSED
    )


def _remedy(kind: LeaseError, verb: Verb, namespace: str, name: str) -> str:
    rights = f"quorate manifests --namespace {namespace} --only rbac | kubectl apply -f -"
    match kind:
        case LeaseError.NAMESPACE_MISSING:
            return f"create the namespace and its rights: {rights}"
        case LeaseError.FORBIDDEN:
            which = f"{verb!r} on leases of coordination.k8s.io in namespace {namespace}"
            return f"grant {which}: {rights}" if name == _GRANTED_NAME else f"grant {which}"
        case LeaseError.UNAUTHORIZED:
            return "give quorate a valid token or client certificate"
        case LeaseError.UNREACHABLE | LeaseError.TIMEOUT:
            return "check the API server and the network to it"
        case LeaseError.INVALID_ANSWER:
            return "see what answers in the API server's place"
    return ""


def _one_line(text: str) -> str:
    """Return what a server said as one short line that no terminal obeys."""
    line = " ".join(text.split())[:_TEXT_CHARS_MAX]
    return line if line.isprintable() else ascii(line)[1:-1]
