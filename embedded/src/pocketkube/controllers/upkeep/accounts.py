"""What every namespace gets: its default ServiceAccount, and the certificate to trust.

Source: ``pkg/controller/serviceaccount`` and ``pkg/controller/certificates/rootcacertpublisher`` of
Kubernetes 1.36.
"""

from __future__ import annotations

import contextlib
from typing import Any

from pocketkube.controllers.base import Controller, Shared, Work
from pocketkube.errors import ApiError
from pocketkube.objects import Object
from pocketkube.store.store import Event

_CONFIG_MAP = "kube-root-ca.crt"
_DESCRIPTION = (
    "Contains a CA bundle that can be used to verify the kube-apiserver when using internal "
    "endpoints such as the internal service IP or kubernetes.default.svc. No other usage is "
    "guaranteed across distributions of Kubernetes clusters."
)


class ServiceAccounts(Controller):
    """Keeps a ServiceAccount ``default`` in every namespace."""

    buckets = ("namespaces", "serviceaccounts")

    def on_event(self, event: Event) -> None:
        """Follow namespaces, and the deletion of default accounts."""
        if event.bucket == "namespaces":
            if event.type != "DELETED":
                self.enqueue(event.entry.name)
        elif event.type == "DELETED" and event.entry.name == "default":
            self.enqueue(event.entry.namespace)

    def reconcile(self, key: Any) -> Work:
        """Create the account if the namespace stays and has none."""
        if not _stays(self.api.find("namespaces", "", key)):
            return None
        if self.api.store.get("serviceaccounts", key, "default") is None:
            account = {
                "apiVersion": "v1",
                "kind": "ServiceAccount",
                "metadata": {"name": "default"},
            }
            resource = self.api.registry.named("v1", "serviceaccounts")
            with contextlib.suppress(ApiError):
                self.api.create(resource, key, account)
        return None


class RootCertificates(Controller):
    """Keeps a ConfigMap with the certificate authority in every namespace."""

    buckets = ("namespaces", "configmaps")

    def __init__(self, shared: Shared, ca_pem: str) -> None:
        super().__init__(shared)
        self._ca_pem = ca_pem

    def on_event(self, event: Event) -> None:
        """Follow namespaces, and whoever touches the ConfigMap."""
        if event.bucket == "namespaces":
            if event.type != "DELETED":
                self.enqueue(event.entry.name)
        elif event.entry.name == _CONFIG_MAP and event.type != "ADDED":
            self.enqueue(event.entry.namespace)

    def reconcile(self, key: Any) -> Work:
        """Create the ConfigMap, or put right what it says."""
        if not self._ca_pem or not _stays(self.api.find("namespaces", "", key)):
            return None
        data = {"ca.crt": self._ca_pem}
        entry = self.api.store.get("configmaps", key, _CONFIG_MAP)
        if entry is not None:

            def change(found: Object) -> None:
                found["data"] = data

            self.api.amend("configmaps", key, _CONFIG_MAP, change)
            return None
        config_map = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {
                "name": _CONFIG_MAP,
                "annotations": {"kubernetes.io/description": _DESCRIPTION},
            },
            "data": data,
        }
        with contextlib.suppress(ApiError):
            self.api.create(self.api.registry.named("v1", "configmaps"), key, config_map)
        return None


def _stays(namespace: Object | None) -> bool:
    return namespace is not None and "deletionTimestamp" not in namespace["metadata"]
