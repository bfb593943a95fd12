"""Bearer tokens: those that were given out by name, and those of ServiceAccounts.

In: the text after ``Bearer``. Out: the user. A ServiceAccount's token is a JWT as a real API server
makes it, but signed with a secret (HS256) instead of a private key: nobody else has to verify it.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from pocketkube.api.writing import User
from pocketkube.causes import invalid
from pocketkube.errors import bad_request, not_found
from pocketkube.errors import invalid as invalid_object
from pocketkube.objects import Object, meta, name_of, namespace_of, rfc3339

ISSUER = "https://kubernetes.default.svc.cluster.local"
"""Who signs, and the audience of the API itself."""

AUTHENTICATED = "system:authenticated"
DURATION_S = 3600
DURATION_MIN_S = 600
DURATION_MAX_S = 2**32
_KNOWN_MAX = 100_000
_BOUND_TO = {("v1", "Pod"): "pods", ("v1", "Secret"): "secrets", ("v1", "Node"): "nodes"}


@dataclass(frozen=True, slots=True)
class _Known:
    user: User
    expires_s: float
    audiences: tuple[str, ...]  # empty: any
    account: tuple[str, str] | None = None  # namespace and name of the ServiceAccount


class Tokens:
    """Makes and reads tokens.

    ``account_uid`` gives the uid of a ServiceAccount by namespace and name, "" when it is gone:
    tokens of deleted accounts are void. Without it tokens last until they expire.
    """

    def __init__(
        self,
        secret: bytes,
        now_s: Callable[[], float],
        account_uid: Callable[[str, str], str] | None = None,
    ) -> None:
        self._secret = secret
        self.now_s = now_s  #: the clock, in seconds since 1970
        self._account_uid = account_uid
        self._static: dict[str, User] = {}
        self._known: dict[str, _Known] = {}

    def add(self, token: str, user: User) -> None:
        """Let a token, any text, stand for a user who is then in system:authenticated too."""
        groups = tuple(dict.fromkeys((*user.groups, AUTHENTICATED)))
        self._static[token] = User(user.name, groups, user.uid)

    def remove(self, token: str) -> None:
        """Let a token that was added stand for nobody."""
        self._static.pop(token, None)

    def user_of(self, token: str) -> User | None:
        """Return who may use the API with a token; None when it is unknown, expired or void."""
        user = self._static.get(token)
        if user is not None:
            return user
        found = self._read(token)
        return found.user if found is not None and ISSUER in found.audiences else None

    def reviewed(self, token: str, audiences: list[str]) -> tuple[User, list[str]] | str:
        """Return a token's user and those of the audiences that it is for; or what is wrong."""
        wanted = audiences or [ISSUER]
        static = self._static.get(token)
        if static is not None:
            return static, wanted if ISSUER in wanted else []
        found = self._read(token)
        if found is None:
            return "invalid bearer token"
        shared = [audience for audience in found.audiences if audience in wanted]
        if not shared:
            own, theirs = _go_list(list(found.audiences)), _go_list(wanted)
            why = f"token audiences {own} is invalid for the target audiences {theirs}"
            return f"[invalid bearer token, {why}]"
        return found.user, shared

    def issue(
        self,
        account: Object,
        *,
        lasts_s: int = DURATION_S,
        audiences: Sequence[str] = (),
        bound: Object | None = None,
    ) -> str:
        """Return a new token of a stored ServiceAccount; ``bound`` is the pod that it is for."""
        now_s = int(self.now_s())
        namespace, name = namespace_of(account), name_of(account)
        about: dict[str, Any] = {
            "namespace": namespace,
            "serviceaccount": {"name": name, "uid": meta(account).get("uid", "")},
        }
        if bound is not None:
            about[bound["kind"].lower()] = {
                "name": name_of(bound),
                "uid": meta(bound).get("uid", ""),
            }
        return self._signed(
            {
                "aud": list(audiences or (ISSUER,)),
                "exp": now_s + lasts_s,
                "iat": now_s,
                "iss": ISSUER,
                "jti": str(uuid.uuid4()),  # two tokens of the same second differ
                "kubernetes.io": about,
                "nbf": now_s,
                "sub": f"system:serviceaccount:{namespace}:{name}",
            }
        )

    def _signed(self, claims: dict[str, Any]) -> str:
        parts = ({"alg": "HS256", "typ": "JWT"}, claims)
        text = ".".join(_encoded(json.dumps(part).encode()) for part in parts)
        return f"{text}.{self._signature(text)}"

    def _signature(self, text: str) -> str:
        return _encoded(hmac.digest(self._secret, text.encode(), hashlib.sha256))

    def _read(self, token: str) -> _Known | None:
        found = self._known.get(token)
        if found is None:
            found = self._verified(token)
            if found is None:
                return None
            if len(self._known) >= _KNOWN_MAX:
                self._known.clear()
            self._known[token] = found
        if self.now_s() >= found.expires_s:
            self._known.pop(token, None)
            return None
        if self._account_uid is not None and found.account is not None:
            uid = self._account_uid(*found.account)
            if not uid or uid != found.user.uid:
                return None
        return found

    def _verified(self, token: str) -> _Known | None:
        text, _, signature = token.rpartition(".")
        if not (text.isascii() and signature.isascii()):
            return None
        if not hmac.compare_digest(self._signature(text), signature):
            return None
        # What follows was written by this class: nobody else has the secret.
        claims = json.loads(_decoded(text.partition(".")[2]))
        about = claims["kubernetes.io"]
        namespace, account = about["namespace"], about["serviceaccount"]
        groups = ("system:serviceaccounts", f"system:serviceaccounts:{namespace}", AUTHENTICATED)
        user = User(claims["sub"], groups, account["uid"])
        return _Known(user, claims["exp"], tuple(claims["aud"]), (namespace, account["name"]))


def requested(
    tokens: Tokens,
    account: Object,
    request: Object,
    find: Callable[[str, str, str], Object | None],
    now_s: float,
) -> Object:
    """Answer a TokenRequest for a stored ServiceAccount.

    ``find`` gives an object by bucket, namespace and name. Raises ApiError (400, 404, 422).
    """
    spec = request.get("spec") or {}
    duration_s = spec.get("expirationSeconds")
    duration_s = DURATION_S if duration_s is None else duration_s
    _check_duration(duration_s)
    audiences = spec.get("audiences") or [ISSUER]
    reference = spec.get("boundObjectRef")
    bound = _bound(account, reference, find) if reference else None
    token = tokens.issue(account, lasts_s=duration_s, audiences=audiences, bound=bound)
    metadata = {**meta(request), "name": name_of(account), "namespace": namespace_of(account)}
    metadata["uid"] = meta(account).get("uid", "")
    metadata["creationTimestamp"] = rfc3339(now_s)
    return {
        "kind": "TokenRequest",
        "apiVersion": "authentication.k8s.io/v1",
        "metadata": metadata,
        "spec": {
            "audiences": audiences,
            "expirationSeconds": duration_s,
            "boundObjectRef": reference or None,
        },
        "status": {"token": token, "expirationTimestamp": rfc3339(int(now_s) + duration_s)},
    }


def _check_duration(duration_s: int) -> None:
    why = ""
    if duration_s < DURATION_MIN_S:
        why = "may not specify a duration less than 10 minutes"
    elif duration_s > DURATION_MAX_S:
        why = "may not specify a duration larger than 2^32 seconds"
    if why:
        cause = invalid("spec.expirationSeconds", duration_s, why)
        raise invalid_object("authentication.k8s.io", "TokenRequest", "", [cause])


def _bound(
    account: Object,
    reference: dict[str, Any],
    find: Callable[[str, str, str], Object | None],
) -> Object:
    version, kind = reference.get("apiVersion", ""), reference.get("kind", "")
    bucket = _BOUND_TO.get((version, kind))
    if bucket is None:
        group, _, short = version.rpartition("/")
        raise bad_request(f"cannot bind token to object of type {group}/{short}, Kind={kind}")
    namespace = "" if bucket == "nodes" else namespace_of(account)
    name = reference.get("name", "")
    found = find(bucket, namespace, name)
    if found is None:
        raise not_found("", bucket, name)
    return {**found, "kind": kind}


def _go_list(items: list[str]) -> str:
    return "[" + " ".join(json.dumps(item) for item in items) + "]"


def _encoded(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def _decoded(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
