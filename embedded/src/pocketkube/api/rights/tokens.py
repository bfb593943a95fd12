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
from pocketkube.errors import bad_request
from pocketkube.objects import Object, meta, name_of, namespace_of, rfc3339

ISSUER = "https://kubernetes.default.svc.cluster.local"
"""Who signs, and the audience of the API itself."""

AUTHENTICATED = "system:authenticated"
DURATION_S = 3600
_KNOWN_MAX = 100_000


@dataclass(frozen=True, slots=True)
class _Known:
    user: User
    expires_s: float
    audiences: tuple[str, ...]  # empty: any
    account: tuple[str, str]  # namespace and name of the ServiceAccount


class Tokens:
    """Makes and reads tokens.

    ``account_uid`` gives the uid of a ServiceAccount by namespace and name, "" when it is gone:
    tokens of deleted accounts are void.
    """

    def __init__(
        self,
        secret: bytes,
        now_s: Callable[[], float],
        account_uid: Callable[[str, str], str],
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

    def user_of(self, token: str) -> User | None:
        """Return who may use the API with a token; None when it is unknown, expired or void."""
        user = self._static.get(token)
        if user is not None:
            return user
        found = self._read(token)
        return found.user if found is not None and ISSUER in found.audiences else None

    def issue(
        self,
        account: Object,
        *,
        lasts_s: int = DURATION_S,
        audiences: Sequence[str] = (),
    ) -> str:
        """Return a new token of a stored ServiceAccount."""
        now_s = int(self.now_s())
        namespace, name = namespace_of(account), name_of(account)
        about: dict[str, Any] = {
            "namespace": namespace,
            "serviceaccount": {"name": name, "uid": meta(account).get("uid", "")},
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
        is_void = self._account_uid(*found.account) != found.user.uid
        return None if is_void else found

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
    now_s: float,
) -> Object:
    """Answer a TokenRequest for a stored ServiceAccount. Raises ApiError (400)."""
    spec = request.get("spec") or {}
    duration_s = spec.get("expirationSeconds")
    duration_s = DURATION_S if duration_s is None else duration_s
    audiences = spec.get("audiences") or [ISSUER]
    if spec.get("boundObjectRef"):
        raise bad_request("this cluster binds tokens to no objects")
    token = tokens.issue(account, lasts_s=duration_s, audiences=audiences)
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
            "boundObjectRef": None,
        },
        "status": {"token": token, "expirationTimestamp": rfc3339(int(now_s) + duration_s)},
    }


def _encoded(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def _decoded(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
