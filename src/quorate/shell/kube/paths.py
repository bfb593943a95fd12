"""Paths of the Kubernetes API. In: names, as they come. Out: a path that is safe to send.

Called by everyone who talks to ``client``. Each part is quoted, so that no name can climb out of
its place; a part that is empty or a dot segment is a ``ValueError``: it would name another thing.
"""

from collections.abc import Mapping
from urllib.parse import quote, urlencode


def resource_path(
    group: str,
    version: str,
    plural: str,
    namespace: str | None = None,
    name: str | None = None,
    sub: str | None = None,
) -> str:
    """Return the path of a collection, an object (``name``) or its subresource (``sub``).

    The core group is ``""``. ``namespace=None`` means cluster scope, or all namespaces.
    """
    parts = ["api", _segment(version)] if not group else ["apis", group, version]
    parts = [_segment(part) for part in parts]
    if namespace is not None:
        parts += ["namespaces", _segment(namespace)]
    parts.append(_segment(plural))
    if name is not None:
        parts.append(_segment(name))
    if sub:
        if name is None:
            raise ValueError(f"subresource {sub!r} needs the name of an object")
        parts += [_segment(part) for part in sub.split("/")]
    return "/" + "/".join(parts)


def pod_path(namespace: str, name: str, sub: str = "") -> str:
    """Return the path of a pod or of its subresource, such as "binding", "status", "eviction".

    Written out because it is called once per bind.
    """
    path = f"/api/v1/namespaces/{_segment(namespace)}/pods/{_segment(name)}"
    return f"{path}/{_segment(sub)}" if sub else path


def with_params(path: str, params: Mapping[str, str | int] | None) -> str:
    """Append a query string; ``path`` may have one already."""
    if not params:
        return path
    return f"{path}{'&' if '?' in path else '?'}{urlencode(params, quote_via=quote)}"


def _segment(part: str) -> str:
    if not part or part in {".", ".."}:
        raise ValueError(f"{part!r} cannot be a part of an API path")
    return quote(part, safe="")


def is_safe_target(target: str) -> bool:
    """Tell whether it is one word of printable ASCII: nothing in it can end the request line."""
    return target.isascii() and target.isprintable() and " " not in target


def address(host: str, port: int) -> str:
    """Return ``host:port`` as a URL has it: IPv6 addresses are in brackets."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
