"""The result of reading a kubeconfig or a pod's files once; ``Credentials`` use it.

Made by ``kubeconfig_access`` and ``in_cluster``.
"""

import math
from collections.abc import Sequence
from typing import Final

import msgspec

RELOAD_INTERVAL_S: Final = 60.0
Headers = Sequence[tuple[str, str]]


class KubeConfigError(Exception):
    """No usable credentials; one line of text says where, what is wrong and what to do."""


class Pem(msgspec.Struct, frozen=True):
    """Certificates or a key, as a file or as data; ``where`` names the field in errors."""

    where: str
    file: str = ""
    data: bytes = b""


class Trust(msgspec.Struct, frozen=True):
    """The inputs of a TLS context."""

    authority: Pem | None = None
    certificate: Pem | None = None
    key: Pem | None = None
    is_verified: bool = True

    def files(self) -> tuple[str, ...]:
        """Return the files that it is made from."""
        parts = (self.authority, self.certificate, self.key)
        return tuple(part.file for part in parts if part is not None and part.file)


class Access(msgspec.Struct, frozen=True, kw_only=True):
    """A server, and how to prove who we are."""

    server: str
    headers: Headers = ()
    trust: Trust = Trust()
    namespace: str = "default"
    tls_server_name: str = ""
    proxy_url: str = ""
    sources: tuple[str, ...] = ()
    """The files that were read, except those of ``trust``."""
    lasts_s: float = RELOAD_INTERVAL_S
    """Seconds until the next read; infinite if only a refusal shows that it is due."""


FOR_EVER: Final = math.inf
