"""Kubeconfigs, read as kubectl reads them. In: files and a context's name. Out: ``Chosen``.

Called by ``credentials``. The first file that names a cluster, user or context wins, with all of
its fields. Missing files of $KUBECONFIG are skipped. Relative paths start at the directory of the
file that has them. No error repeats a value of a file, which may be a secret.
"""

import os
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final, TypeVar

import msgspec

from quorate.shell.kube.identity.access import KubeConfigError

_NAMES_SHOWN: Final = 10
_T = TypeVar("_T")
_Entry = TypeVar("_Entry", bound=msgspec.Struct)


class Cluster(msgspec.Struct, frozen=True, rename="kebab"):
    """The server's address, and how its certificate is checked."""

    server: str = ""
    certificate_authority: str = ""
    certificate_authority_data: bytes = b""
    insecure_skip_tls_verify: bool = False
    tls_server_name: str = ""
    proxy_url: str = ""
    extensions: tuple[dict[str, Any], ...] = ()


class EnvVar(msgspec.Struct, frozen=True):
    """An environment variable for a plugin."""

    name: str
    value: str = ""


class Plugin(msgspec.Struct, frozen=True, rename="camel"):
    """A program that obtains credentials; see ``exec_plugin``."""

    api_version: str = ""
    command: str = ""
    args: tuple[str, ...] = ()
    env: tuple[EnvVar, ...] = ()
    install_hint: str = ""
    interactive_mode: str = ""
    provide_cluster_info: bool = False


class AuthProvider(msgspec.Struct, frozen=True):
    """The predecessor of plugins; only its presence is read, for an error."""

    name: str = ""


class User(msgspec.Struct, frozen=True, rename="kebab"):
    """The user's credentials."""

    token: str = ""
    token_file: str = msgspec.field(default="", name="tokenFile")
    username: str = ""
    password: str = ""
    client_certificate: str = ""
    client_certificate_data: bytes = b""
    client_key: str = ""
    client_key_data: bytes = b""
    acts_as: str = msgspec.field(default="", name="as")
    as_uid: str = ""
    as_groups: tuple[str, ...] = ()
    as_user_extra: dict[str, tuple[str, ...]] = {}
    plugin: Plugin | None = msgspec.field(default=None, name="exec")
    auth_provider: AuthProvider | None = None


class Context(msgspec.Struct, frozen=True):
    """A cluster, a user and a namespace, by their names."""

    cluster: str = ""
    user: str = ""
    namespace: str = ""


class _NamedCluster(msgspec.Struct, frozen=True):
    name: str
    cluster: Cluster


class _NamedUser(msgspec.Struct, frozen=True):
    name: str
    user: User


class _NamedContext(msgspec.Struct, frozen=True):
    name: str
    context: Context


class _File(msgspec.Struct, frozen=True, rename="kebab"):
    api_version: str = msgspec.field(default="v1", name="apiVersion")
    kind: str = "Config"
    current_context: str = ""
    clusters: tuple[_NamedCluster, ...] = ()
    users: tuple[_NamedUser, ...] = ()
    contexts: tuple[_NamedContext, ...] = ()


class Chosen(msgspec.Struct, frozen=True):
    """One context with its cluster and user; paths are absolute."""

    context: str
    namespace: str
    cluster: Cluster
    user: User
    where_cluster: str
    """The file and the name, for errors."""
    where_user: str


def read(files: Sequence[str], context: str | None) -> Chosen:
    """Return the named context of the files; None means the current one.

    Raises KubeConfigError.
    """
    found = [(file, _read_file(file)) for file in files if Path(file).is_file()]
    names = os.pathsep.join(files)
    if not found:
        raise KubeConfigError(
            f"{names}: no such kubeconfig; give its path with --kubeconfig or $KUBECONFIG"
        )
    contexts, clusters, users = _merged(found)
    context = context or next((one.current_context for _, one in found if one.current_context), "")
    if context not in contexts:
        raise KubeConfigError(f"{names}: {_no_context(context, list(contexts))}")
    file, chosen = contexts[context]
    where = f"{file}: context {context!r}"
    if chosen.cluster not in clusters:
        raise KubeConfigError(_no_entry(where, "cluster", chosen.cluster, names))
    if chosen.user and chosen.user not in users:
        raise KubeConfigError(_no_entry(where, "user", chosen.user, names))
    cluster_file, cluster = clusters[chosen.cluster]
    user_file, user = users.get(chosen.user, (file, User()))
    return Chosen(
        context=context,
        namespace=chosen.namespace or "default",
        cluster=_with_whole_paths(cluster, cluster_file, ("certificate_authority",)),
        user=_with_plugin_path(
            _with_whole_paths(user, user_file, ("client_certificate", "client_key", "token_file")),
            user_file,
        ),
        where_cluster=f"{cluster_file}: cluster {chosen.cluster!r}",
        where_user=f"{user_file}: user {chosen.user!r}",
    )


_Found = list[tuple[str, _File]]
_By = dict[str, tuple[str, _T]]


def _merged(found: _Found) -> tuple[_By[Context], _By[Cluster], _By[User]]:
    contexts: _By[Context] = {}
    clusters: _By[Cluster] = {}
    users: _By[User] = {}
    for file, one in found:
        _add(contexts, file, "contexts", [(named.name, named.context) for named in one.contexts])
        _add(clusters, file, "clusters", [(named.name, named.cluster) for named in one.clusters])
        _add(users, file, "users", [(named.name, named.user) for named in one.users])
    return contexts, clusters, users


def _add(known: _By[_T], file: str, field: str, entries: list[tuple[str, _T]]) -> None:
    """Add names that no earlier file has. Raises KubeConfigError for a name twice in one file."""
    names = set()
    for name, entry in entries:
        if name in names:
            raise KubeConfigError(f"{file}: {field}: {name!r} is there twice; rename one of them")
        names.add(name)
        known.setdefault(name, (file, entry))


def _read_file(file: str) -> _File:
    import yaml  # noqa: PLC0415  not for those who run in a cluster

    try:
        plain = yaml.load(Path(file).read_bytes(), Loader=_loader())
    except OSError as error:
        raise KubeConfigError(f"{file}: {error.strerror}; make it readable for us") from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        line = f" in line {mark.line + 1}" if mark else ""
        raise KubeConfigError(f"{file}: not valid YAML{line}; correct it there") from None
    try:
        config = msgspec.convert(without_nulls(plain) or {}, _File)
    except (msgspec.ValidationError, RecursionError) as error:
        what, _, path = str(error).replace("`", "").partition(" - at $")
        at = path.lstrip(".") or "the file"
        raise KubeConfigError(f"{file}: {at}: {what}; correct that field") from None
    if (config.api_version, config.kind) != ("v1", "Config"):
        raise KubeConfigError(f"{file}: not a kubeconfig; it has kind Config and apiVersion v1")
    return config


@cache
def _loader() -> Any:  # noqa: ANN401 - yaml has no types of loaders
    """Return a YAML loader that reads dates as text, as kubectl does."""
    import yaml  # noqa: PLC0415

    class Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
        pass

    Loader.yaml_implicit_resolvers = {
        first: [known for known in resolvers if known[0] != "tag:yaml.org,2002:timestamp"]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }
    return Loader


def without_nulls(value: Any) -> Any:  # noqa: ANN401 - YAML of any type
    """Return the value without null fields, which count as absent."""
    if isinstance(value, dict):
        return {name: without_nulls(one) for name, one in value.items() if one is not None}
    if isinstance(value, list):
        return [without_nulls(one) for one in value]
    return value


def _with_whole_paths(entry: _Entry, file: str, fields: Sequence[str]) -> _Entry:
    folder = os.path.dirname(os.path.abspath(file))
    paths = {name: getattr(entry, name) for name in fields if getattr(entry, name)}
    whole = {name: os.path.join(folder, path) for name, path in paths.items()}
    return msgspec.structs.replace(entry, **whole) if whole else entry


def _with_plugin_path(user: User, file: str) -> User:
    """Return the user with its plugin's absolute path; a bare name is left for $PATH."""
    if user.plugin is None or os.sep not in user.plugin.command:
        return user
    return msgspec.structs.replace(user, plugin=_with_whole_paths(user.plugin, file, ("command",)))


def _no_context(context: str, known: list[str]) -> str:
    said = f"no context is named {context!r}" if context else "no context is current"
    if not known:
        return f"{said}, and there are none; check that it is the right file"
    shown = ", ".join(sorted(known)[:_NAMES_SHOWN])
    more = ", ..." if len(known) > _NAMES_SHOWN else ""
    return f"{said}; choose one of {shown}{more} with --context"


def _no_entry(where: str, kind: str, name: str, files: str) -> str:
    if not name:
        return f"{where}: it names no {kind}; add one to the context"
    return f"{where}: {kind}: none is named {name!r} in {files}; correct the name or add it"
