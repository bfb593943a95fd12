"""Who we are to the API server. In: a kubeconfig or the pod's own files. Out: ``Credentials``.

Called by the composition root; ``client`` uses what it returns. What the files say is read by
``kubeconfig_access`` and ``in_cluster``; here it is kept valid while they are renewed.
"""

import copy
import logging
import os
import ssl
from collections.abc import Awaitable, Callable, Iterable, Mapping
from pathlib import Path
from typing import Final

from multidict import CIMultiDict, CIMultiDictProxy

from quorate.shell.kube.connections import tls
from quorate.shell.kube.identity import in_cluster, kubeconfig
from quorate.shell.kube.identity.access import RELOAD_INTERVAL_S, Access, KubeConfigError
from quorate.shell.kube.identity.kubeconfig_access import access as kubeconfig_access
from quorate.shell.kube.identity.proxies import is_usable, proxy_for
from quorate.shell.process.clock import Clock

__all__ = [
    "LOOK_INTERVAL_S",
    "RELOAD_INTERVAL_S",
    "Credentials",
    "KubeConfigError",
    "credentials_from_kubeconfig",
    "credentials_in_cluster",
    "load_credentials",
]

LOOK_INTERVAL_S: Final = 3.0
"""The least time between checks of the files, which kubelet and others renew in place."""
# A server that answers 401 to everything must not make us run a plugin for every request.
_RELOAD_INTERVAL_S_MIN: Final = 10.0
_SECRET_CHARS_MIN: Final = 8  # a shorter token may be a common word of any message

Load = Callable[[], Awaitable[Access]]
_Stamps = tuple[tuple[str, int, int, int], ...]


class Credentials:
    """The server's address, and TLS and headers that stay valid while their files are renewed.

    ``tls`` is None for plain http. A renewal replaces the context, so that an authority which was
    removed from its file is no longer trusted: read ``tls`` for each new connection.
    It belongs to one event loop: another loop uses a ``copy``.
    """

    def __init__(self, access: Access, load: Load, *, clock: Clock) -> None:
        """Use what was read; ``load`` reads it again.

        Raises KubeConfigError if the certificates or the proxy's scheme cannot be used.
        """
        self._access = access
        self._load = load
        self._clock = clock
        self._loaded_at_s = self._reload_at_s = 0.0
        self._headers: CIMultiDictProxy[str] = CIMultiDictProxy(CIMultiDict())
        self._seen: _Stamps = ()  # all files, as they were when they were last taken
        self._tls_seen: object = None  # what ``tls`` was made from
        self._look_at_s = self._look_again_at_s = 0.0
        self._said = ""
        self.namespace = access.namespace
        """The namespace of the kubeconfig's context or of the pod, as kubectl's default."""
        self.base_url = access.server.rstrip("/")
        self.tls_server_name = access.tls_server_name or None
        self.proxy_url = access.proxy_url or proxy_for(self.base_url, os.environ)
        if self.proxy_url and not is_usable(self.proxy_url):  # it may hold a password: not shown
            raise KubeConfigError(_no_proxy(self.proxy_url))
        self.tls: ssl.SSLContext | None = None
        self._take(access, _stamps(access.sources))

    def copy(self) -> "Credentials":
        """Return a copy for another loop; each renews itself. May be called in any thread."""
        return copy.copy(self)  # its values are replaced, never changed in place

    async def headers(self) -> CIMultiDictProxy[str]:
        """Return the headers of authentication: the same object until they change."""
        now_s = self._clock.monotonic_s()
        if now_s >= self._look_at_s:
            self._look(now_s)
        if now_s >= self._reload_at_s:
            # Set first: requests in the meantime use the old token, which is likely still valid.
            self._reload_at_s = now_s + _RELOAD_INTERVAL_S_MIN
            stamps = _stamps(self._access.sources)  # before they are read: a change then is seen
            try:
                self._take(await self._load(), stamps)
            except KubeConfigError as error:
                # A half-written file, or a plugin that failed once: the old token may still work.
                self._look_again_at_s = now_s + LOOK_INTERVAL_S
                if str(error) != self._said:
                    self._said = str(error)
                    logging.getLogger(__name__).warning("credentials not renewed: %s", error)
        return self._headers

    def look_soon(self) -> None:
        """Note a failure of TLS: the next request checks the files without a delay."""
        self._look_at_s = 0.0

    def invalidate(self) -> None:
        """Note that the server refused us (401): a later request loads the credentials again."""
        self.look_soon()
        earliest_s = self._loaded_at_s + _RELOAD_INTERVAL_S_MIN
        self._reload_at_s = min(self._reload_at_s, max(earliest_s, self._clock.monotonic_s()))

    def redacted(self, text: bytes) -> bytes:
        """Return a server's text without our token, which some proxies repeat in errors."""
        secret = self._headers.get("Authorization", "").rpartition(" ")[2].encode()
        return text.replace(secret, b"(redacted)") if len(secret) >= _SECRET_CHARS_MIN else text

    def _look(self, now_s: float) -> None:
        """Mark the credentials for loading at once if a file has changed."""
        self._look_at_s = now_s + LOOK_INTERVAL_S
        if now_s < self._look_again_at_s:
            return
        if _stamps((*self._access.sources, *self._access.trust.files())) != self._seen:
            self._reload_at_s = now_s

    def _take(self, access: Access, stamps: _Stamps) -> None:
        """Use credentials read from files with these stamps. Raises KubeConfigError."""
        if access.server.rstrip("/") != self.base_url:
            raise KubeConfigError(
                f"{access.server}: not the server that it was at the start, {self.base_url}; "
                "restart to go to another"
            )
        if self.base_url.startswith("https://"):
            tls_stamps = _stamps(access.trust.files())
            if (access.trust, tls_stamps) != self._tls_seen:
                # Open connections keep the old context; new connections get the new one.
                self.tls = tls.context_of(access.trust)
                self._tls_seen = (access.trust, tls_stamps)
            stamps += tls_stamps
        headers = CIMultiDict(access.headers)
        if headers != self._headers:
            self._headers = CIMultiDictProxy(headers)
        self._access, self._seen, self._said = access, stamps, ""
        self._loaded_at_s = self._clock.monotonic_s()
        self._reload_at_s = self._loaded_at_s + max(access.lasts_s, _RELOAD_INTERVAL_S_MIN)


async def load_credentials(
    file: str | Path | None = None, context: str | None = None, *, clock: Clock
) -> Credentials:
    """Find credentials as kubectl does, but prefer the pod's own when we run in a cluster.

    The order: ``file``, $KUBECONFIG, the pod's service account, ~/.kube/config.

    Raises KubeConfigError if none is found or usable.
    """
    listed = os.environ.get("KUBECONFIG", "")
    if file:
        files = [str(file)]
    elif listed:
        files = listed.split(os.pathsep)
    elif context is None and "KUBERNETES_SERVICE_HOST" in os.environ:
        return await credentials_in_cluster(clock=clock)
    else:
        files = [str(Path.home() / ".kube" / "config")]
    return await credentials_from_kubeconfig(*files, context=context, clock=clock)


async def credentials_from_kubeconfig(
    *files: str | Path, context: str | None = None, clock: Clock
) -> Credentials:
    """Read a kubeconfig, or several as they are in $KUBECONFIG.

    Raises KubeConfigError: missing, not valid, or its plugin failed.
    """
    names = [str(Path(file).expanduser()) for file in files if str(file)]
    # Switching kubectl's context must not switch ours, or send our token elsewhere.
    context = kubeconfig.read(names, context).context

    async def load() -> Access:
        return await kubeconfig_access(kubeconfig.read(names, context), names, clock)

    access = await load()
    if access.server.startswith("https://") and not access.trust.is_verified:
        _warn_of_no_verification(access.server)
    return Credentials(access, load, clock=clock)


async def credentials_in_cluster(
    *,
    clock: Clock,
    directory: Path = in_cluster.SERVICE_ACCOUNT_DIR,
    environ: Mapping[str, str] = os.environ,
) -> Credentials:
    """Use the pod's service account. The kubelet renews its token, so the file is read again.

    Raises KubeConfigError: we are not in a pod, or it has no service account token.
    """

    async def load() -> Access:
        return in_cluster.read(directory, environ)

    return Credentials(await load(), load, clock=clock)


def _stamps(files: Iterable[str]) -> _Stamps:
    """Return values that change when a file is renewed; a missing file has zeros."""
    stamps = []
    for file in files:
        try:
            found = os.stat(file)
        except OSError:
            stamps.append((file, 0, 0, 0))
        else:
            stamps.append((file, found.st_ino, found.st_size, found.st_mtime_ns))
    return tuple(stamps)


def _no_proxy(url: str) -> str:
    is_socks = url.lower().startswith("socks")
    return (
        f"{'a SOCKS proxy is not supported' if is_socks else 'the proxy cannot be used'}; give the "
        "URL of one that begins with http:// or https:// as proxy-url in the kubeconfig or in "
        "HTTPS_PROXY, or list the server in NO_PROXY"
    )


def _warn_of_no_verification(url: str) -> None:
    logging.getLogger(__name__).warning(
        "insecure-skip-tls-verify: whoever answers at %s gets the token; give the cluster a "
        "certificate-authority in the kubeconfig instead",
        url,
    )
