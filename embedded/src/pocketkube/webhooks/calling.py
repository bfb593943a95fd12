"""One question to one webhook: an AdmissionReview over HTTPS, and what it answers.

In: a hook and a write. Out: an answer, or CallError, which says in the words of a real API server
why there is none. Services have no addresses in this cluster, so hooks are reached by ``url``.
"""

from __future__ import annotations

import base64
import binascii
import json
import ssl
from dataclasses import dataclass
from typing import Any

import aiohttp

from pocketkube.api.admission.policies import Write, context_of
from pocketkube.webhooks.registered import Hook

_VERSION = "admission.k8s.io/v1"
_TIMEOUT_S = 10  # where the configuration gives none
_ANSWER_BYTES_MAX = 3 * 1024 * 1024


class CallError(Exception):
    """The webhook was not reached, or its answer makes no sense."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a webhook says of a write."""

    allowed: bool
    status: dict[str, Any]
    patch: list[Any]
    warnings: list[str]


class Caller:
    """Asks webhooks. ``close`` ends its connections."""

    def __init__(self) -> None:
        self._session: aiohttp.ClientSession | None = None
        self._trust: dict[str, ssl.SSLContext] = {}

    async def close(self) -> None:
        """End all connections."""
        if self._session is not None:
            await self._session.close()

    async def ask(self, hook: Hook, write: Write, uid: str, *, dry_run: bool) -> Answer:
        """Ask one webhook about one write; ``uid`` is that of the question. Raises CallError."""
        config = hook.spec["clientConfig"]
        url = config.get("url")
        if not url:
            service = config.get("service") or {}
            who = f"{service.get('namespace')}/{service.get('name')}"
            raise CallError(f"service {who} cannot be reached: services have no addresses here")
        timeout_s = hook.spec.get("timeoutSeconds") or _TIMEOUT_S
        if self._session is None:
            self._session = aiohttp.ClientSession()
        body: dict[str, Any] = {"kind": "AdmissionReview", "apiVersion": _VERSION}
        body["request"] = _request(write, uid, dry_run=dry_run)
        try:
            async with self._session.post(
                f"{url}{'&' if '?' in url else '?'}timeout={timeout_s}s",
                json=body,
                ssl=self._trusting(config.get("caBundle") or ""),
                timeout=aiohttp.ClientTimeout(total=timeout_s),
                allow_redirects=False,
            ) as response:
                raw = await response.content.read(_ANSWER_BYTES_MAX)
                if response.status != 200:
                    raise CallError(f"the server answered {response.status} {response.reason}")
        except TimeoutError:
            raise CallError(
                f'Post "{url}?timeout={timeout_s}s": context deadline exceeded'
            ) from None
        except (aiohttp.ClientError, ssl.SSLError, OSError, ValueError) as error:
            raise CallError(f'Post "{url}?timeout={timeout_s}s": {error}') from error
        return _answer(raw, uid)

    def _trusting(self, bundle: str) -> ssl.SSLContext:
        """Return how to check the webhook's certificate: by its bundle, or as the system does."""
        if bundle not in self._trust:
            if len(self._trust) >= 64:
                self._trust.clear()
            pem = base64.b64decode(bundle).decode() if bundle else None
            self._trust[bundle] = ssl.create_default_context(cadata=pem)
        return self._trust[bundle]


def _request(write: Write, uid: str, *, dry_run: bool) -> dict[str, Any]:
    asked = context_of(write)["request"]
    resource = write.resource
    kind = {"group": resource.group, "version": resource.version, "kind": resource.kind}
    if write.subresource:
        sent = resource.subresources[write.subresource]
        if sent.kind:
            kind = {"group": sent.group, "version": sent.version, "kind": sent.kind}
    return {
        "uid": uid,
        "kind": kind,
        "requestKind": kind,
        "resource": asked["resource"],
        "requestResource": asked["resource"],
        "subResource": write.subresource,
        "requestSubResource": write.subresource,
        "name": write.name,
        "namespace": write.namespace,
        "operation": write.operation,
        "userInfo": asked["userInfo"],
        "object": write.obj,
        "oldObject": write.old,
        "dryRun": dry_run,
        "options": None,
    }


def _answer(raw: bytes, uid: str) -> Answer:
    try:
        review = json.loads(raw)
        response = review["response"]
        patch = response.get("patch")
        if response["uid"] != uid:
            raise CallError(f'expected response.uid="{uid}", got "{response["uid"]}"')
        return Answer(
            allowed=response["allowed"] is True,
            status=response.get("status") or {},
            patch=json.loads(base64.b64decode(patch)) if patch else [],
            warnings=[str(one) for one in response.get("warnings") or ()],
        )
    except (ValueError, KeyError, TypeError, AttributeError, binascii.Error) as error:
        raise CallError(f"received invalid webhook response: {error!r}") from error
