"""Users, keys and kubeconfigs of one cluster, as files in its data folder.

In: the data folder. Out: files for the components' flags and for clients. Called by ``cluster``.
Files that are there are kept, so that a cluster started again on its data knows the same users.
"""

import base64
import json
import secrets
from dataclasses import dataclass
from pathlib import Path

from pocketkube.private_files import tighten, write_private

FILES = ("tokens.csv", "service-account.key")
"""What shows that a folder is a control plane's own."""

# The order of the curve P-256: a private key is any number from 1 to this, exclusive.
_P256_ORDER = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
_P256_OID = bytes.fromhex("06082a8648ce3d030107")

# kwok stands for the kubelets. As a system:masters user it passes API priority and fairness by:
# its thousands of status writes take no seat from the scheduler that is measured.
_GROUPS = {
    "admin": "system:masters",
    "system:kube-controller-manager": "",
    "system:kube-scheduler": "",
    "kwok": "system:masters",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Credentials:
    """Paths and tokens that the components and clients of one cluster share."""

    folder: Path
    token_file: Path
    service_account_key: Path
    tokens: dict[str, str]  # user -> bearer token

    @property
    def certificate_dir(self) -> Path:
        """Where kube-apiserver puts the serving certificate that it signs itself."""
        return self.folder / "apiserver-certificates"

    @property
    def ca(self) -> Path:
        """The certificate authority of the API server; exists once it has started."""
        return self.certificate_dir / "apiserver.crt"

    def write_kubeconfig(self, name: str, server: str, token: str) -> Path:
        """Write ``kubeconfig-<name>`` and give its path; JSON, which is YAML too."""
        cluster = {"server": server, "certificate-authority": str(self.ca)}
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "quorate", "cluster": cluster}],
            "users": [{"name": name, "user": {"token": token}}],
            "contexts": [{"name": "quorate", "context": {"cluster": "quorate", "user": name}}],
            "current-context": "quorate",
        }
        path = self.folder / f"kubeconfig-{name.replace(':', '-').replace('/', '-')}"
        write_private(path, json.dumps(config, indent=2) + "\n")
        return path


def prepare(folder: Path) -> Credentials:
    """Write tokens and the service account key into ``folder``, or read those that are there."""
    token_file = folder / "tokens.csv"
    for secret in (token_file, folder / "service-account.key"):
        tighten(secret)
    if not token_file.exists():
        lines = [
            f'{secrets.token_hex(16)},{user},{user},"{group}"\n' for user, group in _GROUPS.items()
        ]
        write_private(token_file, "".join(lines))
    rows = (line.split(",") for line in token_file.read_text().splitlines())
    tokens = {user: token for token, user, *_ in rows}
    key = folder / "service-account.key"
    if not key.exists():
        write_private(key, _new_p256_key())
    return Credentials(folder=folder, token_file=token_file, service_account_key=key, tokens=tokens)


def _new_p256_key() -> str:
    """Make an EC private key (RFC 5915) without its public half, which Go computes from it.

    This saves a dependency on openssl: the standard library makes no keys.
    """
    number = 1 + secrets.randbelow(_P256_ORDER - 1)
    secret = b"\x04\x20" + number.to_bytes(32, "big")
    curve = b"\xa0" + bytes([len(_P256_OID)]) + _P256_OID
    body = b"\x02\x01\x01" + secret + curve
    der = b"\x30" + bytes([len(body)]) + body
    text = base64.encodebytes(der).decode()
    return f"-----BEGIN EC PRIVATE KEY-----\n{text}-----END EC PRIVATE KEY-----\n"
