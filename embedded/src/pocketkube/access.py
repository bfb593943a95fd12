"""Who may enter a cluster: its administrator's token, and the kubeconfig that holds it.

In: the cluster's folder. Out: files with mode 0600 in it, kept when they are there, so that a
cluster that starts again on its data knows the same users.
"""

from __future__ import annotations

import base64
import json
import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pocketkube.private_files import tighten, write_private

ADMIN = "embedded-admin"
NAME = "pocketkube"
SECRETS_FILE = "secrets.json"


@dataclass(frozen=True, slots=True)
class Secrets:
    """The administrator's bearer token, and the key that signs tokens of ServiceAccounts."""

    admin_token: str
    signing_key: bytes


def secrets_in(folder: Path) -> Secrets:
    """Read the folder's secrets, or make them."""
    path = folder / SECRETS_FILE
    tighten(path)
    if not path.exists():
        made = {"adminToken": secrets.token_hex(16), "signingKey": secrets.token_hex(32)}
        write_private(path, json.dumps(made))
    found = json.loads(path.read_text())
    return Secrets(found["adminToken"], bytes.fromhex(found["signingKey"]))


def kubeconfig(server: str, ca: Path, token: str, *, user: str = ADMIN, name: str = NAME) -> str:
    """Return a kubeconfig as JSON, which is YAML too; it holds the CA itself.

    ``name`` is that of its only cluster and context.
    """
    cluster = {
        "server": server,
        "certificate-authority-data": base64.b64encode(ca.read_bytes()).decode(),
    }
    config: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": name, "cluster": cluster}],
        "users": [{"name": user, "user": {"token": token}}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": user}}],
        "current-context": name,
    }
    return json.dumps(config, indent=2) + "\n"
