"""The service account of the pod that we run in. In: its files. Out: an ``Access``."""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from quorate.shell.kube.identity.access import Access, KubeConfigError, Pem, Trust

SERVICE_ACCOUNT_DIR: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")
_REMEDY: Final = "run in a pod with a service account, or give a kubeconfig with --kubeconfig"


def read(directory: Path, environ: Mapping[str, str]) -> Access:
    """Return the files' present contents; the kubelet renews the token and the authority.

    Raises KubeConfigError if we are not in a pod, or it has no service account token.
    """
    host, port = (environ.get(f"KUBERNETES_SERVICE_{part}") for part in ("HOST", "PORT"))
    if not host or not port:
        raise KubeConfigError(
            f"{directory}: KUBERNETES_SERVICE_HOST and _PORT are not set; {_REMEDY}"
        )
    shown = f"[{host}]" if ":" in host else host
    token, authority = directory / "token", directory / "ca.crt"
    if not (said := _text(token)):
        raise KubeConfigError(f"{token}: the token's file is not there, or empty; {_REMEDY}")
    if not authority.is_file():
        raise KubeConfigError(f"{authority}: no CA certificate is there; {_REMEDY}")
    return Access(
        server=f"https://{shown}:{port}",
        headers=(("Authorization", f"Bearer {said}"),),
        trust=Trust(authority=Pem(str(authority), file=str(authority))),
        namespace=_text(directory / "namespace") or "default",
        sources=(str(token),),
    )


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError):
        return ""
