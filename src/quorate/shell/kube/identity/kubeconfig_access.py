"""From a context of a kubeconfig to an ``Access``: which of its fields count, as in kubectl.

Called by ``credentials``. A token file has precedence over a token, and a token over a plugin. A
field that is given both as data and as a file is an error, as in kubectl.
"""

import base64
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import quote

from yarl import URL

from quorate.shell.kube.identity import exec_plugin
from quorate.shell.kube.identity.access import (
    FOR_EVER,
    RELOAD_INTERVAL_S,
    Access,
    KubeConfigError,
    Pem,
    Trust,
)
from quorate.shell.kube.identity.kubeconfig import Chosen, Cluster, User
from quorate.shell.process.clock import Clock

_SKEW_S = 10.0
"""A token is renewed this many seconds before it expires."""


async def access(chosen: Chosen, files: Sequence[str], clock: Clock) -> Access:
    """Return how to reach the context's server as its user; its plugin is run, if it has one.

    Raises KubeConfigError.
    """
    cluster, user = chosen.cluster, chosen.user
    authority = _pem(
        chosen.where_cluster,
        "certificate-authority",
        cluster.certificate_authority,
        cluster.certificate_authority_data,
    )
    certificate, key = _certificate(chosen.where_user, user)
    headers, lasts_s = _identity(chosen, user), RELOAD_INTERVAL_S
    # As in kubectl: a user with a token needs no plugin.
    if user.plugin is not None and not headers:
        status = await exec_plugin.run(user.plugin, chosen)
        lasts_s = FOR_EVER
        if status.expiration_timestamp is not None:
            lasts_s = _seconds_until(status.expiration_timestamp, clock) - _SKEW_S
        if status.token:
            headers = [_bearer(f"{chosen.where_user}: the plugin's token", status.token)]
        if status.client_certificate_data:
            where = f"{chosen.where_user}: the plugin's certificate"
            certificate = Pem(where, data=status.client_certificate_data.encode())
            key = Pem(where, data=status.client_key_data.encode())
    trust = Trust(authority, certificate, key, is_verified=not cluster.insecure_skip_tls_verify)
    return Access(
        server=_server(chosen.where_cluster, cluster, trust),
        headers=(*headers, *_impersonation(chosen.where_user, user)),
        trust=trust,
        namespace=chosen.namespace,
        tls_server_name=cluster.tls_server_name,
        proxy_url=cluster.proxy_url,
        sources=(*files, *filter(None, (user.token_file,))),
        lasts_s=lasts_s,
    )


def _server(where: str, cluster: Cluster, trust: Trust) -> str:
    """Return the server's URL. Raises KubeConfigError."""
    server = cluster.server
    try:
        url = URL(server)
        is_good = url.scheme in ("http", "https") and bool(url.host) and url.port is not None
    except ValueError:
        is_good = False
    if not is_good:
        raise KubeConfigError(
            f"{where}: server: not a URL that begins with https:// or http://; correct it"
        )
    if url.user is not None or url.password is not None:
        raise KubeConfigError(
            f"{where}: server: it holds a name or password; give them as the user's username "
            "and password"
        )
    if trust.authority is not None and not trust.is_verified:
        raise KubeConfigError(
            f"{where}: insecure-skip-tls-verify and certificate-authority exclude each other; "
            "remove insecure-skip-tls-verify"
        )
    return server


def _pem(where: str, field: str, file: str, data: bytes) -> Pem | None:
    if file and data:
        raise KubeConfigError(f"{where}: {field} and {field}-data are both given; remove one")
    if data:
        return Pem(f"{where}: {field}-data", data=data)
    return Pem(f"{where}: {field} {file}", file=file) if file else None


def _certificate(where: str, user: User) -> tuple[Pem | None, Pem | None]:
    data = user.client_certificate_data
    certificate = _pem(where, "client-certificate", user.client_certificate, data)
    key = _pem(where, "client-key", user.client_key, user.client_key_data)
    if certificate is not None and key is None:
        raise KubeConfigError(f"{where}: client-certificate without client-key; add the key")
    return (certificate, key) if certificate is not None else (None, None)


def _identity(chosen: Chosen, user: User) -> list[tuple[str, str]]:
    """Return the header of authentication, if the kubeconfig itself has the credentials."""
    where = chosen.where_user
    if user.auth_provider is not None and not (user.token or user.token_file):
        raise KubeConfigError(
            f"{where}: auth-provider: not supported; give the user an exec plugin instead "
            "(client.authentication.k8s.io/v1)"
        )
    has_password = bool(user.username or user.password)
    if has_password and (user.token or user.token_file):
        raise KubeConfigError(f"{where}: both a token and a password; remove one")
    if user.token_file:
        return [_bearer(f"{where}: tokenFile", _token_in(user, where))]
    if user.token:
        return [_bearer(f"{where}: token", user.token)]
    if has_password:
        pair = f"{user.username}:{user.password}".encode()
        return [("Authorization", f"Basic {base64.b64encode(pair).decode()}")]
    return []


def _token_in(user: User, where: str) -> str:
    """Return the token of the file, or the inline token if the file cannot be read."""
    try:
        said = Path(user.token_file).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError):
        said = ""
    if said or user.token:
        return said or user.token
    raise KubeConfigError(f"{where}: tokenFile: {user.token_file} has no token; write one into it")


def _bearer(where: str, token: str) -> tuple[str, str]:
    return ("Authorization", f"Bearer {_checked(where, token.strip())}")


def _impersonation(where: str, user: User) -> list[tuple[str, str]]:
    """Return the headers of impersonation."""
    if not user.acts_as:
        if user.as_uid or user.as_groups or user.as_user_extra:
            raise KubeConfigError(f"{where}: as-uid, as-groups or as-user-extra without as; add it")
        return []
    headers = [("Impersonate-User", user.acts_as)]
    headers += [("Impersonate-Uid", user.as_uid)] if user.as_uid else []
    headers += [("Impersonate-Group", group) for group in user.as_groups]
    headers += [
        (f"Impersonate-Extra-{quote(name, safe='')}", value)
        for name, values in user.as_user_extra.items()
        for value in values
    ]
    return [(name, _checked(f"{where}: as", value)) for name, value in headers]


def _checked(where: str, value: str) -> str:
    if not value.isprintable() or not value.isascii():
        raise KubeConfigError(f"{where}: it has characters that HTTP forbids; correct it")
    return value


def _seconds_until(moment: datetime, clock: Clock) -> float:
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return moment.timestamp() - clock.now_s()
