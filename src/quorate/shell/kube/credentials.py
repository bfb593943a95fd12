"""Who we are to the API server. In: a kubeconfig or the pod's own files. Out: ``Credentials``.

Called by the composition root; ``client`` uses what it returns. kubernetes_asyncio reads the files
and runs exec plugins, as it knows every form of them; it is imported late, as that takes half a
second.
"""

import logging
import math
import os
import re
import ssl
from collections.abc import Awaitable, Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Final, Protocol

from quorate.shell.clock import Clock
from quorate.shell.kube.proxies import is_usable, proxy_for

RELOAD_INTERVAL_S: Final = 60.0
LOOK_INTERVAL_S: Final = 3.0
"""How often at most the files are looked at: kubelet, kubeadm and others renew them in place."""
# A server that answers 401 to everything must not make us run a plugin for every request.
_RELOAD_INTERVAL_S_MIN: Final = 10.0
_SECRET_CHARS_MIN: Final = 8  # what is shorter is a word of a test, and may be in any sentence
_WHOLE_ENTRY: Final = re.compile(r"/?\{.*\}", re.DOTALL)
_SERVICE_ACCOUNT_DIR: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")


class _Configuration(Protocol):
    """What we use of kubernetes_asyncio's class of that name."""

    host: str
    api_key: dict[str, str]
    ssl_ca_cert: str | None
    cert_file: str | None
    key_file: str | None
    verify_ssl: bool
    tls_server_name: str | None
    proxy: str | None


# Fills a new Configuration; the flag says that nothing known of the old one may be used again,
# because the server refused its token or a file changed.
_Load = Callable[[bool], Awaitable[_Configuration]]
_Stamps = tuple[tuple[str, int, int, int], ...]


class KubeConfigError(Exception):
    """No usable credentials; the one line says where, what is wrong and what to do."""


class Credentials:
    """The server's address, and TLS and headers that stay valid while their files are renewed.

    ``tls`` is None for plain http. It is another context after a renewal, so that an authority
    which is no longer in its file is no longer trusted: ask for it at each new connection.
    """

    def __init__(
        self,
        configuration: _Configuration,
        load: _Load,
        *,
        clock: Clock,
        reload_interval_s: float,
        namespace: str = "",
        sources: Callable[[], Iterable[str]] = tuple,
    ) -> None:
        """Take a Configuration of kubernetes_asyncio, and the function that made it.

        ``namespace`` is that of the kubeconfig's context or of the pod: kubectl's default;
        ``sources`` gives the files that ``load`` reads.

        Raises KubeConfigError: the certificates cannot be used, or the proxy's kind is unknown.
        """
        self._load = load
        self._clock = clock
        self._reload_interval_s = reload_interval_s
        self._refused = False
        self._loaded_at_s = self._reload_at_s = 0.0
        self._headers: dict[str, str] = {}
        self._sources = sources
        self._tls_files: tuple[str, ...] = ()
        self._seen: _Stamps = ()  # all files, as they were when they were last taken
        self._tls_seen: object = None  # what ``tls`` was made from
        self._look_at_s = self._look_again_at_s = 0.0
        self._said = ""
        self.namespace = namespace or "default"
        self.base_url = str(configuration.host).rstrip("/")
        self.tls_server_name: str | None = configuration.tls_server_name
        self.proxy_url = configuration.proxy or proxy_for(self.base_url, os.environ)
        if self.proxy_url and not is_usable(self.proxy_url):  # it may hold a password: not shown
            raise KubeConfigError(
                "the proxy's URL cannot be used; give one that begins with http:// or https:// as "
                "proxy-url in the kubeconfig or in HTTPS_PROXY, or list the server in NO_PROXY"
            )
        self.tls: ssl.SSLContext | None = None
        self._take(configuration, _stamps(sources()))
        if self.base_url.startswith("https://") and not configuration.verify_ssl:
            _warn_of_no_verification(self.base_url)

    async def headers(self) -> dict[str, str]:
        """Return the headers that prove who we are: the same dict until they change."""
        now_s = self._clock.monotonic_s()
        if now_s >= self._look_at_s:
            self._look(now_s)
        if now_s >= self._reload_at_s:
            # Set first: those who ask meanwhile use the old token, which is likely still valid.
            self._reload_at_s = now_s + _RELOAD_INTERVAL_S_MIN
            refused, self._refused = self._refused, False
            stamps = _stamps(self._sources())  # before they are read: a change meanwhile is seen
            try:
                self._take(await self._load(refused), stamps)
            except KubeConfigError as error:
                # A file half written, a plugin that failed once: the old token may serve on.
                self._look_again_at_s = now_s + LOOK_INTERVAL_S
                if str(error) != self._said:
                    self._said = str(error)
                    logging.getLogger(__name__).warning("credentials not renewed: %s", error)
        return self._headers

    def look_soon(self) -> None:
        """Tell that TLS failed, so that the next request looks at the files whenever that was."""
        self._look_at_s = 0.0

    def invalidate(self) -> None:
        """Tell that the server refused us (401), so that a next request loads anew."""
        self._refused = True
        self.look_soon()
        earliest_s = self._loaded_at_s + _RELOAD_INTERVAL_S_MIN
        self._reload_at_s = min(self._reload_at_s, max(earliest_s, self._clock.monotonic_s()))

    def redacted(self, text: bytes) -> bytes:
        """Return what a server said, without our token, which some proxies repeat in errors."""
        secret = self._headers.get("Authorization", "").rpartition(" ")[2].encode()
        return text.replace(secret, b"(redacted)") if len(secret) >= _SECRET_CHARS_MIN else text

    def _look(self, now_s: float) -> None:
        """Load at once if a file is not what it was."""
        self._look_at_s = now_s + LOOK_INTERVAL_S
        if now_s < self._look_again_at_s:
            return
        if _stamps((*self._sources(), *self._tls_files)) != self._seen:
            self._refused = True
            self._reload_at_s = now_s

    def _take(self, configuration: _Configuration, stamps: _Stamps) -> None:
        """Use a Configuration whose sources had these stamps. Raises KubeConfigError."""
        if str(configuration.host).rstrip("/") != self.base_url:
            raise KubeConfigError(
                f"{configuration.host}: not the server that it was at the start, {self.base_url}; "
                "restart to go to another"
            )
        token = str(configuration.api_key.get("BearerToken") or "").strip()
        headers = {"Authorization": token} if token else {}
        if headers != self._headers:
            self._headers = headers
        if self.base_url.startswith("https://"):
            files = (configuration.ssl_ca_cert, configuration.cert_file, configuration.key_file)
            tls_files = tuple(file for file in files if file)
            tls_stamps = _stamps(tls_files)
            made_from = (files, configuration.verify_ssl, tls_stamps)
            if made_from != self._tls_seen:
                # Connections that are open keep the old one, those to come get the new one.
                self.tls = _tls_context(configuration)
                self._tls_files, self._tls_seen = tls_files, made_from
            stamps += tls_stamps
        self._seen, self._said = stamps, ""
        self._loaded_at_s = self._clock.monotonic_s()
        self._reload_at_s = self._loaded_at_s + self._reload_interval_s


async def load_credentials(
    kubeconfig: str | Path | None = None, context: str | None = None, *, clock: Clock
) -> Credentials:
    """Find credentials as kubectl does, but prefer the pod's own when we run in a cluster.

    The order: ``kubeconfig``, $KUBECONFIG, the pod's service account, ~/.kube/config.

    Raises KubeConfigError: none found, or not usable.
    """
    chosen = kubeconfig or os.environ.get("KUBECONFIG")
    if not chosen and context is None and "KUBERNETES_SERVICE_HOST" in os.environ:
        return await credentials_in_cluster(clock=clock)
    return await credentials_from_kubeconfig(
        chosen or Path.home() / ".kube" / "config", context, clock=clock
    )


async def credentials_from_kubeconfig(
    path: str | Path, context: str | None = None, *, clock: Clock
) -> Credentials:
    """Read a kubeconfig, or several, separated as in $KUBECONFIG.

    Raises KubeConfigError: missing, not valid, or its plugin failed.
    """
    from kubernetes_asyncio.client import Configuration  # noqa: PLC0415  slow to import
    from kubernetes_asyncio.config import kube_config  # noqa: PLC0415

    # The loader logs its errors, and raises them as well; one line is enough.
    logging.getLogger("kubernetes_asyncio").addHandler(logging.NullHandler())
    name = str(path)
    if not any(Path(part).expanduser().is_file() for part in name.split(os.pathsep) if part):
        raise KubeConfigError(
            f"{name}: no such kubeconfig; give its path with --kubeconfig or $KUBECONFIG"
        )
    loader: Any = None

    async def load(refused: bool) -> _Configuration:
        nonlocal loader
        configuration: _Configuration = type.__call__(
            Configuration
        )  # not a copy of the process's default
        try:
            if loader is None or refused:
                loader = await kube_config.load_kube_config(
                    config_file=name, context=context, client_configuration=configuration
                )
            else:  # keeps what it knows of a token's expiry, re-reads a token's file
                await loader.load_and_set(configuration)
        except Exception as error:  # the loader raises nearly anything, TypeError included
            wrong_context = _wrong_context(name, context)
            raise KubeConfigError(
                wrong_context
                or f"{name}: {_describe(error)}; check it with "
                f"`kubectl --kubeconfig {name} version`"
            ) from error
        return configuration

    def sources() -> list[str]:
        files = [str(Path(part).expanduser()) for part in name.split(os.pathsep) if part]
        token_file = loader._user.safe_get("tokenFile") if loader._user else None
        if token_file:
            files.append(str(Path(loader._config_base_path or "", token_file)))
        return files

    configuration = await load(False)
    # Who goes to another context with kubectl must not take us along, nor our token.
    context = loader._current_context["name"]
    # An exec plugin that gives no expiry is run again only when the server refuses its token.
    runs_for_ever = "exec" in (loader._user or {}) and not hasattr(loader, "exec_plugin_expiry")
    interval_s = math.inf if runs_for_ever else RELOAD_INTERVAL_S
    chosen = loader._current_context["context"]
    return Credentials(
        configuration,
        load,
        clock=clock,
        reload_interval_s=interval_s,
        namespace=chosen.safe_get("namespace") or "",
        sources=sources,
    )


async def credentials_in_cluster(
    *,
    clock: Clock,
    directory: Path = _SERVICE_ACCOUNT_DIR,
    environ: Mapping[str, str] = os.environ,
) -> Credentials:
    """Use the pod's service account. The kubelet renews its token, so the file is read again.

    Raises KubeConfigError: we are not in a pod, or it has no service account token.
    """
    from kubernetes_asyncio.client import Configuration  # noqa: PLC0415  slow to import
    from kubernetes_asyncio.config import incluster_config  # noqa: PLC0415

    async def load(refused: bool) -> _Configuration:
        configuration: _Configuration = type.__call__(Configuration)
        try:
            incluster_config.load_incluster_config(  # type: ignore[no-untyped-call]
                configuration,
                try_refresh_token=False,  # we read it again ourselves
                token_filename=str(directory / "token"),
                cert_filename=str(directory / "ca.crt"),
                environ=environ,
            )
        except Exception as error:
            raise KubeConfigError(
                f"{directory}: {_describe(error)}; run in a pod with a service account, "
                "or give a kubeconfig with --kubeconfig"
            ) from error
        return configuration

    try:
        namespace = (directory / "namespace").read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError):
        namespace = ""
    return Credentials(
        await load(False),
        load,
        clock=clock,
        reload_interval_s=RELOAD_INTERVAL_S,
        namespace=namespace,
        sources=lambda: (str(directory / "token"),),
    )


def _stamps(files: Iterable[str]) -> _Stamps:
    """Return what tells that a file was renewed; a file that is not there has zeros."""
    stamps = []
    for file in files:
        try:
            found = os.stat(file)
        except OSError:
            stamps.append((file, 0, 0, 0))
        else:
            stamps.append((file, found.st_ino, found.st_size, found.st_mtime_ns))
    return tuple(stamps)


def _wrong_context(name: str, context: str | None) -> str:
    """Return what is wrong with the context that was asked for; nothing if it is there."""
    import yaml  # noqa: PLC0415  for this error only

    known: list[str] = []
    for part in name.split(os.pathsep):
        try:
            whole = yaml.safe_load(Path(part).expanduser().read_text(encoding="utf-8"))
            known += [str(one["name"]) for one in whole.get("contexts") or ()]
            context = context or whole.get("current-context")
        except (OSError, ValueError, yaml.YAMLError, AttributeError, TypeError, KeyError):
            continue
    if not known:
        return ""
    if not context:
        return f"{name}: no context is current; choose one of {_listed(known)} with --context"
    if context in known:
        return ""
    return f"{name}: no context is named {context!r}; choose one of {_listed(known)} with --context"


def _listed(names: list[str]) -> str:
    shown = ", ".join(sorted(names)[:10])
    return f"{shown}, ..." if len(names) > 10 else shown


def _tls_context(configuration: _Configuration) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cafile=configuration.ssl_ca_cert)
    except (OSError, ssl.SSLError) as error:
        raise KubeConfigError(
            f"{configuration.ssl_ca_cert}: not a usable CA certificate ({error}); "
            "correct certificate-authority in the kubeconfig"
        ) from error
    # Python 3.13 began to demand extensions that the CAs of many clusters lack, and Go does not.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    if not configuration.verify_ssl:  # only if the kubeconfig says insecure-skip-tls-verify
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if configuration.cert_file:
        try:
            # A password, though none is needed: without one OpenSSL would ask the terminal.
            context.load_cert_chain(configuration.cert_file, configuration.key_file, password="")
        except (OSError, ssl.SSLError) as error:
            raise KubeConfigError(
                f"{configuration.cert_file}: not a usable client certificate and key ({error}); "
                "renew the user's client-certificate in the kubeconfig"
            ) from error
    return context


def _warn_of_no_verification(url: str) -> None:
    logging.getLogger(__name__).warning(
        "insecure-skip-tls-verify: whoever answers at %s gets the token; give the cluster a "
        "certificate-authority in the kubeconfig instead",
        url,
    )


def _describe(error: BaseException) -> str:
    """Return the error as one line without a full stop.

    kubernetes_asyncio names an entry of a kubeconfig by all that is in it, tokens included.
    """
    text = " ".join(_WHOLE_ENTRY.sub("", str(error)).split()).rstrip(".")
    return text or type(error).__name__
