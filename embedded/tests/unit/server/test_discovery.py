"""Discovery: what the real server said when it was recorded, and what CRDs add to it."""

import dataclasses
import json
import random
from typing import Any

import pytest

from pocketkube.registry.resources import Registry
from pocketkube.schema.document import Document
from pocketkube.schema.resource import Resource, Subresource
from pocketkube.server.documents import discovery

DOCUMENT = Document.load()


def custom(group: str, version: str, plural: str, kind: str) -> Resource:
    verbs = {"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"}
    own = {"group": group, "version": version}
    status = Subresource(
        name="status", verbs=frozenset({"get", "patch", "update"}), kind=kind, **own
    )
    scale = dataclasses.replace(
        status, name="scale", kind="Scale", group="autoscaling", version="v1"
    )
    return Resource(
        **own,
        plural=plural,
        singular=kind.lower(),
        kind=kind,
        namespaced=True,
        verbs=frozenset(verbs),
        short_names=("sh",),
        subresources={"scale": scale, "status": status},
        shape=DOCUMENT.shape("io.k8s.api.core.v1.ConfigMap"),
        bucket=f"{plural}.{group}",
        crd=f"{plural}.{group}",
    )


def registry(*more: Resource) -> Registry:
    return Registry([*DOCUMENT.resources(), *more])


def get(path: str, *more: Resource) -> Any:
    found = discovery.page(path, registry(*more), DOCUMENT)
    return None if found is None else json.loads(found[1])


def test_plain_lists_name_subresources_after_their_resource():
    resources = get("/apis/apps/v1")["resources"]
    names = [resource["name"] for resource in resources]
    assert names[:4] == ["controllerrevisions", "daemonsets", "daemonsets/status", "deployments"]
    scale = next(resource for resource in resources if resource["name"] == "deployments/scale")
    assert (scale["group"], scale["version"], scale["singularName"]) == ("autoscaling", "v1", "")
    assert "group" not in resources[names.index("deployments/status")]


def test_groups_have_a_preferred_version():
    group = get("/apis/autoscaling")
    assert group["preferredVersion"] == {"groupVersion": "autoscaling/v2", "version": "v2"}
    listed = [entry["name"] for entry in get("/apis")["groups"]]
    assert listed == [entry["name"] for entry in DOCUMENT.groups if entry["name"]]
    assert get("/api")["versions"] == ["v1"]


@pytest.mark.parametrize("path", ["/apis/nope", "/apis/apps/v9", "/api/v9", "/apis/", "/other"])
def test_there_is_no_page_for_what_is_not_served(path):
    assert get(path.rstrip("/") + ("/x" if path == "/apis/" else "")) is None


def test_crds_come_after_the_built_in_groups_by_name_and_stability():
    versions = ["v1alpha1", "v1beta2", "v2", "v1", "v10", "v1beta1", "v11alpha2", "foo"]
    random.Random(1).shuffle(versions)
    more = [custom("zeta.io", version, "widgets", "Widget") for version in versions]
    more.append(custom("alpha.io", "v1", "things", "Thing"))
    groups = get("/apis", *more)["groups"]
    assert [group["name"] for group in groups[-2:]] == ["alpha.io", "zeta.io"]
    assert [version["version"] for version in groups[-1]["versions"]] == [
        "v10", "v2", "v1", "v1beta2", "v1beta1", "v11alpha2", "v1alpha1", "foo",
    ]  # fmt: skip


def test_crds_are_written_as_the_real_server_writes_them():
    more = custom("zeta.io", "v1", "widgets", "Widget")
    resources = get("/apis/zeta.io/v1", more)["resources"]
    assert resources[0]["verbs"][:2] == ["delete", "deletecollection"]
    assert [entry["name"] for entry in resources] == ["widgets", "widgets/status", "widgets/scale"]
